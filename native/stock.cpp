#include "stock.h"

#include <algorithm>
#include <utility>

namespace paritylab {

void Stock::add(Run run) {
    const Lock lock(mutex_);
    runs_.push_back(std::move(run));
}

bool Stock::take(Run& run) {
    const Lock lock(mutex_);
    if (runs_.empty()) return false;
    run = std::move(runs_.front());
    runs_.pop_front();
    return true;
}

void Stock::finish(Record record) {
    const Lock lock(mutex_);
    records_.push_back(std::move(record));
}

std::vector<Record> Stock::collect() {
    const Lock lock(mutex_);
    std::vector<Record> records = std::exchange(records_, {});
    std::ranges::stable_sort(records, {}, &Record::tag);
    return records;
}

void Stock::discard(const Tags& tags) {
    const Lock lock(mutex_);
    std::erase_if(runs_, [&](const Run& run) { return tags.contains(run.tag); });
    std::erase_if(records_, [&](const Record& record) { return tags.contains(record.tag); });
}

size_t Stock::waiting() const {
    const Lock lock(mutex_);
    return runs_.size();
}

}  // namespace paritylab
