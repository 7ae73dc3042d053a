// Compiled once per instruction set; PARITYLAB_ISA is its name.
#include "supports.h"

#include "enumeration.h"
#include "meeting.h"

namespace paritylab::PARITYLAB_ISA {

#define PARITYLAB_TEXT(x) #x
#define PARITYLAB_NAME(x) PARITYLAB_TEXT(x)

Searches searches() {
    const auto enumerate = [](Evidence evidence, int size, size_t first) -> std::unique_ptr<Search> {
        return std::make_unique<supports::Enumeration>(std::move(evidence), size, first);
    };
    const auto meet = [](Evidence evidence, int size, Keys keys) -> std::unique_ptr<Search> {
        if (size == 3) return std::make_unique<supports::Triples>(std::move(evidence), std::move(keys));
        return std::make_unique<supports::Quadruples>(std::move(evidence), std::move(keys));
    };
    return {PARITYLAB_NAME(PARITYLAB_ISA), enumerate, meet};
}

}  // namespace paritylab::PARITYLAB_ISA
