"""The one seam that matters: how a decoding method sees a model.

A method never touches tensors, caches or clocks. It feeds tokens to a session and reads rows of next-token scores.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol


class Rows(Protocol):
    """Next-token scores of n positions, computed on demand, in at least float32.

    Row i follows the i-th token that was fed. Every reading is one transfer to the host for all n rows.
    """

    def __len__(self) -> int: ...

    def last(self) -> Rows:
        """The last row alone; nothing is computed for the others."""
        ...

    def argmax(self) -> list[int]:
        """The most probable next token of each row."""
        ...

    def max_prob(self) -> list[float]:
        """The largest probability of each row, in [0, 1]."""
        ...

    def logprob(self, tokens: Sequence[int], first: int = 0) -> list[float]:
        """ln p of tokens[i] in row first + i, in nats; rows beyond are not asked for."""
        ...

    def probs(self) -> Any:
        """The distributions, a tensor of shape [n, vocabulary]."""
        ...

    def top_two(self) -> list[tuple[float, float]]:
        """The two largest probabilities of each row, the larger first."""
        ...


class Session(Protocol):
    """One model reading one source text and writing one target."""

    @property
    def length(self) -> int:
        """Tokens whose keys and values are cached, the start token included."""
        ...

    def extend(self, tokens: Sequence[int]) -> Rows:
        """Feed n >= 1 tokens in one forward pass; the cache grows by n."""
        ...

    def truncate(self, length: int) -> None:
        """Forget everything after the first `length` tokens; costs nothing."""
        ...


class LayeredSession(Protocol):
    """One model whose decoder is run layer by layer, one position after the other.

    For each position: `embed`, `run_layer` as often as need be, read `rows`, and `skip_rest` to go on.
    """

    @property
    def depth(self) -> int:
        """How many layers the decoder has."""
        ...

    @property
    def length(self) -> int:
        """Positions that are done, the start token included."""
        ...

    def embed(self, tokens: Sequence[int]) -> None:
        """Begin new positions below the first layer."""
        ...

    def run_layer(self) -> None:
        """Take them through the next layer."""
        ...

    def rows(self) -> Rows:
        """Scores of the states as they are, through the final norm, its scaling and the shared head."""
        ...

    def similarity(self) -> float:
        """Cosine of the last position's states above and below the last layer run, in [-1, 1]."""
        ...

    def classify(self) -> float:
        """The learned exit classifier's probability that the last position may leave here."""
        ...

    def skip_rest(self) -> None:
        """Finish the positions: layers not run get keys and values projected from the states as they are."""
        ...


class Peer(Protocol):
    """Another implementation's own generation loop over the same encoded source."""

    def generate(self, max_tokens: int, assistant: dict[str, Any] | None) -> list[int]:
        """Greedy ids; with settings for the small model as assistant, assisted generation."""
        ...


@dataclass(frozen=True)
class Sessions:
    """What a method decodes one source with, freshly opened: what it declared that it needs, and nothing else."""

    large: Session | None = None
    small: Session | None = None
    layered: LayeredSession | None = None
    peer: Peer | None = None
    depth: int | None = None

    def need_large(self) -> Session:
        """The large model's session, for methods that declare it."""
        assert self.large is not None, "the method did not declare that it uses the large model"
        return self.large

    def need_small(self) -> Session:
        """The small model's session, for methods that declare it."""
        assert self.small is not None, "the method did not declare that it uses the small model"
        return self.small

    def need_layered(self) -> LayeredSession:
        """The layered session, for methods that declare it."""
        assert self.layered is not None, "the method did not declare that it uses a layered session"
        return self.layered

    def need_peer(self) -> Peer:
        """The other implementation, for methods that declare it."""
        assert self.peer is not None, "the method did not declare that it uses another implementation"
        return self.peer
