"""The paper's tables re-made on real text with our own models: `make study`, docs/STUDY.md."""
