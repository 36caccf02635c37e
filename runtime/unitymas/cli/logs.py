"""Logging, configured once: our events and other libraries' lines alike go to standard error in one format."""

from __future__ import annotations

import logging
import sys
from typing import Literal

import structlog

LogFormat = Literal["console", "json"]
LogLevel = Literal["debug", "info", "warning", "error"]


class _StandardError(logging.Handler):
    """Writes to what `sys.stderr` is at that moment: a live display puts itself in between."""

    def emit(self, record: logging.LogRecord) -> None:
        sys.stderr.write(self.format(record) + "\n")


def configure(log_format: LogFormat, level: LogLevel) -> None:
    """Log events of at least this level: lines for people, or one JSON object a line."""
    stamped: list[structlog.typing.Processor] = [
        structlog.contextvars.merge_contextvars,
        structlog.stdlib.add_log_level,
        structlog.processors.TimeStamper(fmt="iso" if log_format == "json" else "%H:%M:%S", utc=log_format == "json"),
    ]
    structlog.configure(
        processors=[
            structlog.stdlib.filter_by_level,
            *stamped,
            structlog.stdlib.ProcessorFormatter.wrap_for_formatter,
        ],
        logger_factory=structlog.stdlib.LoggerFactory(),
        wrapper_class=structlog.stdlib.BoundLogger,
        cache_logger_on_first_use=False,
    )
    handler = _StandardError(level.upper())  # a library may have set its own logger lower
    handler.setFormatter(
        structlog.stdlib.ProcessorFormatter(
            foreign_pre_chain=stamped,
            processors=[structlog.stdlib.ProcessorFormatter.remove_processors_meta, *_rendering(log_format)],
        )
    )
    logging.basicConfig(handlers=[handler], level=level.upper(), force=True)


def _rendering(log_format: LogFormat) -> list[structlog.typing.Processor]:
    if log_format == "json":
        return [structlog.processors.format_exc_info, structlog.processors.JSONRenderer()]
    return [structlog.dev.ConsoleRenderer(colors=sys.stderr.isatty())]
