// A mutex, which is nothing where there are no threads: the C++ library of WebAssembly has none then.
#pragma once

#if defined(__wasm__)

namespace paritylab {

struct Mutex {};

struct Lock {
    explicit Lock(Mutex&) {}
};

}  // namespace paritylab

#else

#include <mutex>

namespace paritylab {

using Mutex = std::mutex;
using Lock = std::lock_guard<std::mutex>;

}  // namespace paritylab

#endif
