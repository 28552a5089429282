"""Functions wrapped in a span: plain ones, coroutines, generators. Implemented in Python, since they call Python."""
import functools
import inspect


def wrap(span, function):
    """The function with the span around each call (a generator: from its first step to its end)."""
    if not callable(function):
        raise TypeError(f"tare.span decorates a function, not {type(function).__name__}")
    if inspect.iscoroutinefunction(function):
        @functools.wraps(function)
        async def wrapped(*args, **kwargs):
            with span:
                return await function(*args, **kwargs)
    elif inspect.isasyncgenfunction(function):
        @functools.wraps(function)
        async def wrapped(*args, **kwargs):
            with span:
                async for item in function(*args, **kwargs):
                    yield item
    elif inspect.isgeneratorfunction(function):
        @functools.wraps(function)
        def wrapped(*args, **kwargs):
            with span:
                return (yield from function(*args, **kwargs))
    else:
        @functools.wraps(function)
        def wrapped(*args, **kwargs):
            with span:
                return function(*args, **kwargs)
    return wrapped
