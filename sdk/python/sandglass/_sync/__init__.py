"""The SDK, for programs that wait. Made of `_async` by tools/sdk-python."""
