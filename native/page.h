// What is otherwise where the sources are compiled for a page of the site: its module is to be small.
#pragma once

#if defined(__wasm__)
#define PARITYLAB_ONCE [[gnu::noinline]] inline  // called, where elsewhere it is copied to each place
#else
#define PARITYLAB_ONCE inline
#endif

namespace paritylab {

#if defined(__wasm__)
inline constexpr bool SMALL = true;  // one loop for all shapes, where elsewhere there are loops for some
#else
inline constexpr bool SMALL = false;
#endif

}  // namespace paritylab
