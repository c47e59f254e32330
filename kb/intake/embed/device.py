"""On which device does this process embed: the processor, or a GPU?"""

from kb.errors import UsageError

_device = ""


def use_device(device: str, kind: str) -> None:
    """Have models of this process run on a device from now on, such as `cpu`, `cuda` or `cuda:1`.

    `kind` is the embedder's. Raises UsageError where its runtime has no such device here.
    """
    global _device
    if kind == "sentence-transformers":
        _check_torch(device)
    elif kind in ("onnx", "multilingual"):
        if device != "cpu":
            provider_of(device)
    elif device != "cpu":
        raise UsageError(f"--device {device}: models of the kind {kind} choose no device")
    _device = device


def device() -> str:
    """The device that was chosen; empty leaves it to the runtime."""
    return _device


def provider_of(device: str) -> tuple[str, dict[str, str]]:
    """What onnxruntime calls a device. Raises UsageError where it has none of that name here."""
    import onnxruntime

    name, _, number = device.partition(":")
    there = onnxruntime.get_available_providers()
    by_device = {provider.removesuffix("ExecutionProvider").lower(): provider for provider in there}
    provider = by_device.get(name)
    if provider is None or (number and not number.isdecimal()):
        usable = ", ".join(sorted({*by_device} - {"azure"}))
        raise UsageError(
            f"--device {device}: onnxruntime has {usable} here; "
            "for a GPU of NVIDIA install onnxruntime-gpu in place of onnxruntime"
        )
    return provider, {"device_id": number} if number else {}


def _check_torch(device: str) -> None:
    try:
        import torch
    except ImportError as error:
        raise UsageError(f"--device {device}: torch is not installed") from error
    try:
        torch.empty(0, device=device)
    except (RuntimeError, AssertionError, ValueError) as error:
        first = str(error).partition("\n")[0]
        raise UsageError(f"--device {device}: torch has no such device here ({first})") from error
