"""The SDK, for programs that await. `_sync` is made of this by tools/sdk-python."""
