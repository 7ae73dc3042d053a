// What lr is multiplied by at each step.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <unordered_map>
#include <utility>
#include <vector>

#include "mutex.h"

namespace paritylab {

// In blocks of SIZE steps, made when a run gets there and forgotten when none is there any more: a run may have 2^31
// steps and be solved at the tenth.
class Schedule {
public:
    using Block = std::vector<float>;
    static constexpr int64_t SIZE = 1 << 16;

    explicit Schedule(std::function<Block(int64_t)> make) : make_(std::move(make)) {}

    std::shared_ptr<const Block> block(int64_t number) {
        const Lock lock(mutex_);
        std::weak_ptr<const Block>& kept = blocks_[number];
        std::shared_ptr<const Block> found = kept.lock();
        if (!found) kept = found = std::make_shared<const Block>(make_(number));
        return found;
    }

private:
    std::function<Block(int64_t)> make_;
    std::unordered_map<int64_t, std::weak_ptr<const Block>> blocks_;
    Mutex mutex_;  // groups ask at the same time
};

}  // namespace paritylab
