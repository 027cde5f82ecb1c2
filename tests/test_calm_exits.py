"""CALM on a T5 whose weights are set by hand, so that every exit is known beforehand.

All attention is silent. A feed-forward layer adds 2.83 of one direction where the state has another one; all other
layers leave the state as it is. Directions (d_model = 8) and the texts they make:

- START is direction 0, of which the head knows nothing; layer 2 adds direction 2, which says token 2.
- Token 2 is direction 3, which says token 3 at once.
- Token 3 is direction 4, which says token 3 faintly; layer 3 adds direction 1, which says END.
- Layer 4 changes nothing.
"""

from __future__ import annotations

import math

import pytest
import torch
import transformers

from bild_bench.decoding.calm import CalmSettings, calm
from bild_bench.decoding.picking import Greedy
from bild_bench.decoding.records import Decoded, Limits
from bild_bench.decoding.session import Sessions
from bild_bench.models.fast import FastModel
from bild_bench.models.layered import LayeredSession

START, END, SIZE, DEPTH = 0, 1, 8, 4
# Token -> its direction; direction -> (layer from 1, direction that is added there); (token, direction) -> weight.
EMBEDDED = {START: 0, 2: 3, 3: 4, END: 7}
ADDED = {0: (2, 2), 4: (3, 1)}
HEAD = {(2, 2): 4.0, (3, 3): 4.0, (3, 4): 0.1, (END, 1): 4.0}


def hand_built(classifier: tuple[torch.Tensor, torch.Tensor] | None = None) -> LayeredSession:
    config = transformers.T5Config(
        vocab_size=4,
        d_model=SIZE,
        d_kv=SIZE,
        d_ff=1,
        num_layers=1,
        num_decoder_layers=DEPTH,
        num_heads=1,
        scale_decoder_outputs=False,
        layer_norm_epsilon=1e-12,
    )
    model = transformers.T5ForConditionalGeneration(config).double().eval().requires_grad_(False)
    model.lm_head.weight = torch.nn.Parameter(torch.zeros(4, SIZE, dtype=torch.float64), requires_grad=False)
    for weight in model.decoder.parameters():
        if weight.dim() > 1:
            weight.zero_()
    for token, direction in EMBEDDED.items():
        model.decoder.embed_tokens.weight[token, direction] = 1.0
    for direction, (layer, added) in ADDED.items():
        # The norm makes a lone direction sqrt(8) = 2.83 long.
        feed = model.decoder.block[layer - 1].layer[2].DenseReluDense
        feed.wi.weight[0, direction] = 1.0
        feed.wo.weight[added, 0] = 1.0
    for (token, direction), weight in HEAD.items():
        model.lm_head.weight[token, direction] = weight
    fast = FastModel(model, 4, classifier)
    return LayeredSession(fast, fast.encode(torch.tensor([[2, 1]])))


def decode(session: LayeredSession, max_tokens: int = 3, **settings: object) -> Decoded:
    limits = Limits(max_tokens, START, frozenset({END}))
    return calm(Sessions(layered=session), CalmSettings(**settings), limits, Greedy())  # type: ignore[arg-type]


def measured(session: LayeredSession, token: int, layers: int) -> tuple[float, float]:
    """The lead of the best token, and the cosine, after so many layers of a first token."""
    session.embed([token])
    for _ in range(layers):
        session.run_layer()
    first, second = session.rows().top_two()[0]
    return first - second, session.similarity()


def test_the_model_is_what_was_written_down() -> None:
    # One direction alone: its logit is 4 * 2.83. With 2.83 of another one it is shortened to 2.67: 8 / 3.
    lead, _ = measured(hand_built(), START, 1)
    assert lead == pytest.approx(0.0)  # four even tokens
    lead, cosine = measured(hand_built(), START, 2)
    one = math.exp(4 * 8 / 3)
    assert lead == pytest.approx((one - 1) / (one + 3))
    assert cosine == pytest.approx(1 / 3)  # 1 / sqrt(1 + 8)
    lead, cosine = measured(hand_built(), 3, 2)
    faint = math.exp(0.1 * math.sqrt(8))
    assert lead == pytest.approx((faint - 1) / (faint + 3))  # 0.076
    assert cosine == pytest.approx(1.0)


def test_with_no_exit_it_writes_2_3_end() -> None:
    outcome = decode(hand_built(), threshold=1.0)
    assert (outcome.tokens, outcome.exit_layers) == ((2, 3, END), (0, 0, 0, 3))


def test_the_softmax_measure_leaves_where_the_head_becomes_sure() -> None:
    outcome = decode(hand_built(), threshold=0.9)
    assert outcome.tokens == (2, 3, END)
    assert outcome.exit_layers == (1, 1, 1, 0)  # token 3 at layer 1, token 2 at layer 2, END at layer 3


def test_a_lower_threshold_takes_the_faint_word_too() -> None:
    # 0.05 is below the lead of 0.076 after token 3, and above the 0 after START.
    outcome = decode(hand_built(), threshold=0.05)
    assert outcome.tokens == (2, 3, 3)
    assert outcome.exit_layers == (2, 1, 0, 0)


def test_the_state_measure_leaves_at_the_first_layer_that_changes_nothing() -> None:
    # START changes at layer 2 and not at 3; the others do not change at layer 2, where token 3 repeats itself faintly.
    outcome = decode(hand_built(), measure="state", threshold=0.9)
    assert outcome.tokens == (2, 3, 3)
    assert outcome.exit_layers == (0, 2, 1, 0)


def test_the_state_measure_leaves_earlier_below_the_cosine_of_a_changing_layer() -> None:
    # The change at layer 2 has a cosine of 1/3; from layer 3 on, token 3 has said END (cosine 1/3 there too).
    outcome = decode(hand_built(), measure="state", threshold=0.3, min_layer=3)
    assert (outcome.tokens, outcome.exit_layers) == ((2, 3, END), (0, 0, 3, 0))
    outcome = decode(hand_built(), measure="state", threshold=0.34, min_layer=3)
    assert (outcome.tokens, outcome.exit_layers) == ((2, 3, END), (0, 0, 2, 1))


def test_the_classifier_leaves_by_the_state_alone() -> None:
    # Sure of directions 1 and 2 (sigmoid(2.83 * 4 - 2) = 0.9999), and not of direction 3, where the softmax is.
    weight = torch.zeros(SIZE)
    weight[1] = weight[2] = 4.0
    outcome = decode(hand_built((weight, torch.tensor(-2.0))), measure="classifier", threshold=0.9)
    assert outcome.tokens == (2, 3, END)
    assert outcome.exit_layers == (0, 1, 1, 1)  # token 2 at layer 2, END at layer 3, token 3 nowhere


def test_the_decaying_threshold_lets_later_tokens_leave() -> None:
    # N = 3 and lambda = 0: 0.1, then 0.026, then 0.0069. The faint lead of 0.076 is below the first, above the third.
    outcome = decode(hand_built(), threshold=0.0, decay=True)
    assert (outcome.tokens, outcome.exit_layers) == ((2, 3, 3), (2, 1, 0, 0))
    # N = 30: 0.1, 0.0875, 0.0766, so that the third token (lead 0.0755) just has to go on to layer 3.
    outcome = decode(hand_built(), 30, threshold=0.0, decay=True)
    assert (outcome.tokens, outcome.exit_layers) == ((2, 3, END), (1, 1, 1, 0))
