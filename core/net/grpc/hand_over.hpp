// SPDX-License-Identifier: Apache-2.0
// ThreadSanitizer annotations. gRPC is built without ThreadSanitizer, so the sanitizer does not see that
// passing an object to gRPC on one thread happens before receiving it in a gRPC callback on another. All such
// hand-overs call these two functions.
#pragma once

#if defined(__SANITIZE_THREAD__)
#define DIST_THREAD_SANITIZER 1
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define DIST_THREAD_SANITIZER 1
#endif
#endif

#ifdef DIST_THREAD_SANITIZER
extern "C" void __tsan_acquire(void* at);
extern "C" void __tsan_release(void* at);
#endif

namespace dist::grpc_link {

// Call this before passing to gRPC the object that `at` identifies.
inline void give_to_grpc([[maybe_unused]] void* at) noexcept {
#ifdef DIST_THREAD_SANITIZER
  __tsan_release(at);
#endif
}

// Call this first in a gRPC callback about that object.
inline void take_from_grpc([[maybe_unused]] void* at) noexcept {
#ifdef DIST_THREAD_SANITIZER
  __tsan_acquire(at);
#endif
}

}  // namespace dist::grpc_link
