"""`python -m bild_bench` is `bild-bench`."""

from bild_bench.cli.main import main

main()
