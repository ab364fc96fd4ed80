"""The protocol of Text Generation Inference (https://huggingface.github.io/text-generation-inference/). Knows nothing of HTTP."""
