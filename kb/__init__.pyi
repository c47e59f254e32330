from kb import errors as errors
from kb.client.library.home import Home as Home
from kb.client.library.home import open as open  # noqa: A004  it is called so: kb.open

__version__: str
__all__ = ["Home", "__version__", "errors", "open"]
