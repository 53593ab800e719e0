//! C ABI of the Cheetah engine.
