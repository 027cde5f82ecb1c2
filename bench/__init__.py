"""Speed, as ratios from one interleaved run: `make bench`. docs/performance/method.md says how."""
