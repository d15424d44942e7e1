"""The version of the SDK; its minor version is that of the hub (SDK-21)."""

VERSION = "0.1.0"
