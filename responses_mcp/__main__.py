"""The console script and `python -m responses_mcp`. Imports next to nothing, so that a signal finds a quiet process."""

import os
import sys

# What `signal` is made of, there since the interpreter's start. `signal` itself builds its enums first, and an
# interrupt in these milliseconds would print a traceback.
_signal = sys.modules["_signal"]

_ENDING = [getattr(_signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP", "SIGBREAK") if hasattr(_signal, name)]
_INTERRUPTED = 130
PATIENCE = 0.2  # seconds for a thread that still loads certificates


def _is_piped() -> bool:
    """Tell whether stdin is a pipe or a socket, as a client has it that starts us without arguments."""
    try:
        return os.fstat(0).st_mode & 0o170000 in {0o010000, 0o140000}  # S_IFMT; S_IFIFO, S_IFSOCK
    except OSError:
        return False


def _end_interrupted() -> None:
    """End with 130; on a terminal by the signal itself, which is 130 to a shell and ends a loop of commands, too.

    A shell goes on with the loop where the command ended by an exit code of its own.
    """
    for stream in (sys.stdout, sys.stderr):
        try:  # noqa: SIM105  # without an import
            stream.flush()
        except (AttributeError, OSError, ValueError):  # closed
            pass
    if os.name == "posix" and os.isatty(2):
        _signal.signal(_signal.SIGINT, _signal.SIG_DFL)
        os.kill(os.getpid(), _signal.SIGINT)
    os._exit(_INTERRUPTED)


def _say_interrupted() -> None:
    if sys.stderr is not None:
        try:  # noqa: SIM105  # without an import
            os.write(2, (b"\r" if os.isatty(2) else b"") + b"openai-responses-mcp: interrupted.\n")  # over ^C
        except OSError:
            pass


def main() -> None:
    """Run the command line and exit with its code."""
    argv = sys.argv[1:] or (["--stdio"] if _is_piped() else [])
    serving = "--stdio" in argv and argv[0].startswith("-")  # a command may have it among its words

    def end_quietly(number: int, frame: object) -> None:  # noqa: ARG001  # the signature of a signal handler
        try:
            if "responses_mcp.logs" in sys.modules:  # the client may have had answers, and the log tells of them
                import logging  # noqa: PLC0415  # complete by then: the module that imports logs needs it before

                logging.shutdown()
        finally:
            # Whatever came of that: the log may have been half set up.
            if serving:
                os._exit(0)
            _say_interrupted()
            _end_interrupted()

    interruptible = _signal.getsignal(_signal.SIGINT) is _signal.default_int_handler  # else started by nohup or so
    if serving:
        # A client may end us while we still import. Once serving, the handlers of `serve_descriptors` take over.
        for number in _ENDING:
            _signal.signal(number, end_quietly)
    elif interruptible:
        _signal.signal(_signal.SIGINT, end_quietly)
    import gc  # noqa: PLC0415  # after the signals are in hand, as all that follows

    # Imports make objects that stay. To look for garbage among them takes a twentieth of a start.
    gc.disable()
    from responses_mcp.errors import exhausted  # noqa: PLC0415

    code = 1
    try:
        from responses_mcp.cli import COMMANDS, command_first, run  # noqa: PLC0415

        argv = command_first(argv)
        if argv and argv[0] in COMMANDS:
            __import__(COMMANDS[argv[0]])
        if not serving:  # a server does so behind its first answers
            gc.enable()
        if interruptible and not serving:
            _signal.signal(_signal.SIGINT, _signal.default_int_handler)  # now there may be something to clean up
        code = run(argv)
    except KeyboardInterrupt:
        _say_interrupted()
        code = _INTERRUPTED
    except (Exception, BaseExceptionGroup) as error:
        shortage = exhausted(error)
        if isinstance(error, BaseExceptionGroup) and error.subgroup(KeyboardInterrupt):
            code = _INTERRUPTED
        elif shortage is None:
            raise
        elif sys.stderr is not None:
            os.write(2, f"openai-responses-mcp: {shortage}\n".encode())
    finally:
        if interruptible:
            _signal.signal(_signal.SIGINT, _signal.SIG_IGN)  # the interpreter's end would print a traceback
    if code == _INTERRUPTED and interruptible:
        _end_interrupted()
    certificates = getattr(sys.modules.get("responses_mcp.responses_api.http.network"), "certificates", None)
    if certificates is not None and not certificates.acquire(timeout=PATIENCE):
        # From a disk that hangs, or a pipe. The interpreter's end would take OpenSSL down under the thread that loads
        # them, which crashes.
        os._exit(code)
    sys.exit(code)


if __name__ == "__main__":
    main()
