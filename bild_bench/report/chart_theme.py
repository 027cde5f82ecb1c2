"""Fonts and colours of the plots, and plots as files."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from bild_bench.printable import visible_values
from bild_bench.report.chart_layers import Spec

_VERSION = "v5.21"
# Ink, softer ink, grid, ground.
_DARK = ("#E8EAED", "#A5ACB5", "#343A42", "#15181C")
_LIGHT = ("#1C2127", "#5B6470", "#E9ECEF", "#FFFFFF")
_PADDING, _NARROW_PADDING = 20, 4


def themed(spec: Mapping[str, Any], *, dark: bool = False, narrow: bool = False) -> Spec:
    """The specification with fonts, grid and text colours for a light or a dark ground, and no control character."""
    ink, soft, grid, ground = _DARK if dark else _LIGHT
    font = "Inter, 'Helvetica Neue', 'Liberation Sans', Arial, sans-serif"
    axis = {"labelColor": soft, "titleColor": ink, "gridColor": grid, "tickColor": grid, "domainColor": grid}
    sizes = {"labelFontSize": 12, "titleFontSize": 13, "titleFontWeight": 500, "titlePadding": 12, "labelPadding": 6}
    title = {"color": ink, "subtitleColor": soft, "fontSize": 17, "subtitleFontSize": 12, "subtitleLineHeight": 17}
    frame = "bounds" if narrow else "group"
    if narrow:
        sizes |= {"titlePadding": 8, "labelPadding": 4}
        title |= {"fontSize": 14, "subtitleFontSize": 11, "subtitleLineHeight": 15}
    config = {
        "font": font,
        "axis": {**axis, **sizes},
        "title": {**title, "anchor": "start", "offset": 18, "fontWeight": 600, "subtitlePadding": 7, "frame": frame},
        "legend": {"labelColor": ink, "titleColor": soft, "labelFontSize": 12, "titleFontSize": 12, "symbolSize": 90},
        "view": {"stroke": None},
        "text": {"color": ink},
        "style": {
            "front": {"color": ink, "strokeWidth": 2, "opacity": 0.8},
            "halo": {"stroke": ground, "strokeWidth": 3, "strokeJoin": "round", "color": ground},
            "reference": {"color": soft},
        },
    }
    padding = _NARROW_PADDING if narrow else _PADDING
    return {**visible_values(spec), "background": ground, "padding": padding, "config": config}


def png(spec: Mapping[str, Any], *, scale: float = 2.0) -> bytes:
    """The themed specification as a PNG picture; scale 2 is sharp in slides."""
    import vl_convert

    return bytes(vl_convert.vegalite_to_png(themed(spec), vl_version=_VERSION, scale=scale))


def svg(spec: Mapping[str, Any]) -> str:
    """The themed specification as an SVG picture."""
    import vl_convert

    return str(vl_convert.vegalite_to_svg(themed(spec), vl_version=_VERSION))
