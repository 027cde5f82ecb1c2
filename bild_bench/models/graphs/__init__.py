"""The T5 decoder as steps of fixed shape over static tensors, captured as CUDA graphs."""
