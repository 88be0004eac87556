"""Which proxy variable applies to a URL, by the rules of the HTTP libraries under openai."""

from __future__ import annotations

import ipaddress
from collections.abc import Mapping
from dataclasses import dataclass
from urllib.parse import urlsplit


@dataclass(frozen=True)
class Proxy:
    """A proxy that stands between us and the server.

    Attributes:
        variable: the environment variable that names it.
        shown: its address without user name and password.
    """

    variable: str
    shown: str


def proxy_for(url: str, environ: Mapping[str, str]) -> Proxy | None:
    """Find the proxy that requests to a URL go through, if there is one."""
    parts = urlsplit(url)
    host = (parts.hostname or "").lower()
    if _is_excepted(host, environ.get("no_proxy") or environ.get("NO_PROXY") or ""):
        return None
    for name in (f"{parts.scheme}_proxy", "all_proxy"):
        for variable in (name, name.upper()):
            if value := environ.get(variable, "").strip():
                address = urlsplit(value if "://" in value else f"http://{value}")
                port = f":{address.port}" if address.port else ""
                return Proxy(variable, f"{address.hostname}{port}")
    return None


def _is_excepted(host: str, no_proxy: str) -> bool:
    # Addresses are compared as they are written: localhost does not cover 127.0.0.1. Nor does a network cover its
    # hosts: that is new in httpx2, and the client itself is asked besides (Server.is_direct).
    for entry in (entry.strip().lower() for entry in no_proxy.split(",")):
        name = entry.rpartition("://")[2].lstrip(".").strip("[]")
        if entry == "*" or (name and (host == name or (not _is_address(host) and host.endswith(f".{name}")))):
            return True
    return False


def is_near(url: str) -> bool:
    """Whether a URL names this machine or its own network, where a proxy has no business."""
    host = (urlsplit(url).hostname or "").lower()
    if _is_address(host):
        address = ipaddress.ip_address(host)
        return address.is_loopback or address.is_private or address.is_link_local
    return "." not in host or host.endswith((".localhost", ".local", ".internal"))


def _is_address(host: str) -> bool:
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return False
    return True
