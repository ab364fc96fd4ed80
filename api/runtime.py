"""From the name of a model to a running engine: what the Python API, the server and the command line share."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from ..engine.config import DType, EngineConfig, Quantization, SpeculativeConfig
from ..engine.request import InvalidRequest
from ..grammar.limits import Limits
from .ports import Engine, ServedModel

if TYPE_CHECKING:
    from ..engine.models.model_info import ModelInfo
    from ..engine.models.progress import Progress
    from ..fsm_cache.compiler import CompilerStats
    from ..fsm_cache.vocabulary import Vocabulary


@dataclass(frozen=True, kw_only=True)
class RuntimeOptions:
    """Everything a user can set about a model and its engine; names follow vLLM.

    Attributes:
        tensor_parallel_size: number of GPUs that share the model; only 1 is built.
        speculative_config: settings of `SpeculativeConfig`.
        limits: budgets of each constraint.
        grammar_cache_memory_bytes: memory of the grammars that are kept for other requests, 512 MiB if None; those used longest ago
            go first.
        fsm_cache_dir: folder in which tables of vocabularies are kept for the next start (`fsm_cache.ArrayStore`); None keeps none.

    The others are those of `EngineConfig`.
    """

    model: str
    dtype: DType = "auto"
    quantization: Quantization | None = None
    max_model_len: int | None = None
    max_num_seqs: int | None = None
    max_num_batched_tokens: int | None = None
    gpu_memory_utilization: float = 0.9
    kv_cache_memory_bytes: int | None = None
    tensor_parallel_size: int = 1
    enable_prefix_caching: bool = True
    async_scheduling: bool | None = None
    resident_masks: bool | None = None
    draft_from_grammar: bool = True
    speculative_config: Mapping[str, Any] | None = None
    max_waiting: int = 1024
    seed: int | None = None
    device: str | None = None
    limits: Limits = field(default_factory=Limits)
    grammar_cache_memory_bytes: int | None = None
    fsm_cache_dir: str | None = None

    def __post_init__(self) -> None:
        if self.tensor_parallel_size != 1:
            raise InvalidRequest(
                f"tensor_parallel_size={self.tensor_parallel_size} is not supported yet: a model runs on one device (1)",
                param="tensor_parallel_size",
            )
        self.engine_config()  # refuses what is out of range now, not after the model is loaded

    def engine_config(self) -> EngineConfig:
        return EngineConfig(
            model=self.model,
            dtype=self.dtype,
            quantization=self.quantization,
            max_model_len=self.max_model_len,
            max_num_seqs=self.max_num_seqs,
            max_num_batched_tokens=self.max_num_batched_tokens,
            kv_cache_memory_bytes=self.kv_cache_memory_bytes,
            gpu_memory_utilization=self.gpu_memory_utilization,
            enable_prefix_caching=self.enable_prefix_caching,
            async_scheduling=self.async_scheduling,
            resident_masks=self.resident_masks,
            draft_from_grammar=self.draft_from_grammar,
            speculative=None if self.speculative_config is None else SpeculativeConfig.of(self.speculative_config),
            max_waiting=self.max_waiting,
            seed=self.seed,
            device=self.device,
        )


@dataclass(frozen=True, kw_only=True)
class Runtime:
    """A loaded model with its engine.

    Attributes:
        model: what prompts need of it.
        engine: runs the requests.
        max_model_len: most tokens of prompt and answer together.
        max_waiting: requests that may wait in the engine.
        token_bytes: token id -> the bytes that it stands for; for a special token, its name.
        vocabulary: the tokens as grammars see them; None where answers are read as text only.
        compiler_stats: what grammars have cost so far; None where there is no compiler.
        model_info: facts about the files of the model; reads them.
        closers: what else ends with the runtime, in this order.
    """

    model: ServedModel
    engine: Engine
    max_model_len: int
    max_waiting: int
    token_bytes: Callable[[int], bytes]
    vocabulary: Vocabulary | None = None
    compiler_stats: Callable[[], CompilerStats] | None = None
    model_info: Callable[[], ModelInfo | None] = lambda: None
    closers: tuple[Callable[[], None], ...] = ()

    def close(self) -> None:
        """End all requests and the engine's threads. May be called twice."""
        self.engine.close()
        for closer in self.closers:
            closer()


def open_runtime(options: RuntimeOptions, *, progress: Progress | None = None) -> Runtime:
    """Find, fetch if need be, and load a model, and start its engine.

    Args:
        progress: called while a model is fetched, see `ModelStore`.

    Raises:
        ModelNotFound, DownloadError, UnsupportedModel: the model is not to be had.
        InvalidRequest: the options contradict each other or do not fit into memory.
    """
    # Loading these takes seconds, which a mistake in the options should not cost.
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "IProgress not found")  # tqdm wants ipywidgets in a notebook, for bars that nobody sees
        from ..engine.attention import IMPLEMENTATION
        from ..engine.client import EngineClient
        from ..engine.core import EngineCore
        from ..engine.detokenizer import TokenTable
        from ..engine.models.loader import load_model
        from ..engine.models.store import ModelStore
        from ..engine.runner import pick_device, pick_dtype
    from ..fsm_cache.compiler import FsmCompiler
    from ..fsm_cache.store import ArrayStore
    from ..fsm_cache.vocabulary import Vocabulary

    config = options.engine_config()
    files = ModelStore().resolve(options.model, progress=progress)
    device = pick_device(config)
    model = load_model(
        files.path,
        dtype=pick_dtype(config, device),
        attn_implementation=IMPLEMENTATION,
        device=device,
        fuse=config.fuse,
        quantization=config.quantization or (None if config.dtype == "auto" else "none"),
    )
    store = None if options.fsm_cache_dir is None else ArrayStore(options.fsm_cache_dir)
    vocabulary = Vocabulary.from_tokenizer(model.tokenizer, model.vocab_size, model.eos_token_ids, store)
    table = TokenTable(token_bytes=vocabulary.token_bytes, special_name=model.tokenizer.id_to_token)
    compiler = FsmCompiler(vocabulary, options.limits, max_bytes=options.grammar_cache_memory_bytes)
    core = EngineCore(model, config, compiler)
    return Runtime(
        model=model,
        engine=EngineClient(core),
        max_model_len=core.limits.max_model_len,
        max_waiting=core.limits.max_waiting,
        token_bytes=lambda token: table.token_bytes[token] or table.name_bytes(token),
        vocabulary=vocabulary,
        compiler_stats=compiler.stats,
        model_info=lambda: ModelStore().show(options.model),
        closers=(compiler.close,),
    )
