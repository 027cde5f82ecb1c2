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

    def logprob(self, tokens: Sequence[int]) -> list[float]:
        """ln p of tokens[i] in row i, in nats. `len(tokens)` may be less than n: the first rows are read."""
        ...

    def probs(self) -> Any:
        """The distributions, a tensor of shape [n, vocabulary]."""
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


@dataclass(frozen=True)
class Sessions:
    """Fresh sessions over one source, of the models that a method uses."""

    large: Session | None = None
    small: Session | None = None

    def need_large(self) -> Session:
        """The large model's session, for methods that declare it."""
        assert self.large is not None, "the method did not declare that it uses the large model"
        return self.large

    def need_small(self) -> Session:
        """The small model's session, for methods that declare it."""
        assert self.small is not None, "the method did not declare that it uses the small model"
        return self.small
