"""Speed, as ratios from one interleaved run: `make bench`. docs/PERFORMANCE.md says what is measured, and how."""
