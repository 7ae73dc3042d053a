// Work in several threads at once. std::jthread would do, but the C++ library of many a Mac has none.
#pragma once

#include <cstddef>
#include <thread>
#include <vector>

namespace paritylab {

// Calls work(0), ..., work(count - 1), the first in this thread and each other in its own; returns when all are done.
template <class Work>
void in_threads(size_t count, Work&& work) {
    struct Joined : std::vector<std::thread> {
        ~Joined() {
            for (std::thread& each : *this) each.join();
        }
    } others;
    others.reserve(count);
    for (size_t i = 1; i < count; ++i) others.emplace_back(work, i);
    work(0);
}

}  // namespace paritylab
