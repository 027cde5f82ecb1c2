"""Forms of data files: which are read, by the ends of their names, and what to do with those that are not."""

from __future__ import annotations

from pathlib import Path

TEXT_FORMS = (".jsonl", ".json", ".csv", ".tsv")
FORMS = (".parquet", ".arrow", *TEXT_FORMS)
COMPRESSIONS = (".gz", ".bz2", ".zst")


_AS_TABLE = "save it as CSV or JSON Lines"
_SIDE_BY_SIDE = "put both sides into one file with a header: (printf 'source\\ttarget\\n'; paste A B) > texts.tsv"
_WAYS = {
    ".txt": _SIDE_BY_SIDE,
    ".zip": "unpack it, and give the file inside",
    ".tar": "unpack it, and give the file inside",
    ".tgz": "unpack it, and give the file inside",
    ".xz": "unpack it with xz -d",
    ".ndjson": "name it .jsonl",
    ".xlsx": _AS_TABLE,
    ".xls": _AS_TABLE,
    ".ods": _AS_TABLE,
    ".pkl": _AS_TABLE,
    ".pickle": _AS_TABLE,
    ".feather": "save it as Parquet",
    ".db": _AS_TABLE,
    ".sqlite": _AS_TABLE,
    ".xml": _AS_TABLE,
    ".tmx": _AS_TABLE,
    ".yaml": _AS_TABLE,
    ".yml": _AS_TABLE,
}


def form_of(path: Path) -> str:
    """The form that a name tells, such as ".jsonl" of texts.jsonl.gz; "" where it is none that is read."""
    suffix = path.suffix.lower()
    if suffix in COMPRESSIONS:
        inner = Path(path.stem).suffix.lower()
        # Parquet and Arrow have compression of their own inside, and are read from several places at once.
        return inner if inner in TEXT_FORMS else ""
    return suffix if suffix in FORMS else ""


def is_text_form(form: str) -> bool:
    """Whether a form is one of lines of text, which may be compressed as a whole."""
    return form in TEXT_FORMS


def stem_of(path: Path) -> str:
    """The name without form and compression: "test" of test.jsonl.gz."""
    return Path(path.stem).stem if path.suffix.lower() in COMPRESSIONS else path.stem


def way_out(path: Path) -> str:
    """What to do with a file of a form that is not read."""
    suffixes = [suffix.lower() for suffix in path.suffixes]
    known = next((_WAYS[suffix] for suffix in reversed(suffixes) if suffix in _WAYS), None)
    if known is None and suffixes and suffixes[-1] in COMPRESSIONS:
        known = "unpack it first"
    read = f"give a folder or a {any_of(FORMS)} file ({any_of(TEXT_FORMS)} also with {any_of(COMPRESSIONS)} after it)"
    return read if known is None else f"{known}, or {read}"


def any_of(names: tuple[str, ...]) -> str:
    """Names as an English list: a, b or c."""
    return f"{', '.join(names[:-1])} or {names[-1]}"
