"""The runtime of ONNX graphs, with the same options for all callers."""

import os
from typing import TYPE_CHECKING, Final

from kb.intake.embed.device import device, provider_of

if TYPE_CHECKING:
    from onnxruntime import InferenceSession

_WEIGHTS_IN: Final = "session.model_external_initializers_file_folder_path"


def cores() -> int:
    """The number of processors that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def session_of(
    graph: str | bytes, *, is_prepared: bool = True, weights_in: str = ""
) -> "InferenceSession":
    """A graph, by its file's path or its bytes, ready to run on the caller's thread.

    Any number of threads may run it at once. One that is not prepared was written by others, and
    the runtime makes it faster as it loads. `weights_in` is the folder of the files that bytes name
    for their weights. Raises the runtime's own errors.
    """
    # Telemetry is off: it would count uses under an id of this machine in the user's cache folder.
    os.environ["ORT_DISABLE_TELEMETRY"] = "1"
    import onnxruntime

    options = onnxruntime.SessionOptions()
    # One thread for each run: texts run side by side, and no thread waits for another.
    options.intra_op_num_threads = 1
    options.inter_op_num_threads = 1
    levels = onnxruntime.GraphOptimizationLevel
    # kb's graphs are written as they should run; looking for more only makes loading slower. So
    # does planning which buffers to share: 30 ms, for 5 MB in each thread.
    options.graph_optimization_level = (
        levels.ORT_DISABLE_ALL if is_prepared else levels.ORT_ENABLE_ALL
    )
    options.enable_mem_reuse = False
    options.enable_mem_pattern = False
    options.log_severity_level = 4
    if weights_in:
        options.add_session_config_entry(_WEIGHTS_IN, weights_in)
    chosen = device()
    gpu = [provider_of(chosen)] if chosen not in ("", "cpu") else []
    return onnxruntime.InferenceSession(graph, options, providers=[*gpu, "CPUExecutionProvider"])
