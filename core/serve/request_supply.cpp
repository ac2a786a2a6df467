// SPDX-License-Identifier: Apache-2.0
#include "core/serve/request_supply.hpp"

#include <new>

#include "core/serve/instances.hpp"

namespace dist {

// Memory for several requests.
struct RequestSupply::Slab {
  static constexpr std::size_t kRequests = 16;
  explicit Slab(Instances& home) noexcept {
    for (std::size_t i = 0; i < kRequests; ++i) {
      new (&request(i)) Request(home.memory(), home);
      if (i > 0) request(i - 1).next = &request(i);
    }
  }
  ~Slab() {
    for (std::size_t i = 0; i < kRequests; ++i) request(i).~Request();
  }
  Slab(const Slab&) = delete;
  Slab& operator=(const Slab&) = delete;
  static void destroy(Slab* slab) noexcept {
    Memory& memory = slab->request(0).memory();
    slab->~Slab();
    memory.free(slab, sizeof(Slab), alignof(Slab));
  }

  Request& request(std::size_t i) noexcept { return *(reinterpret_cast<Request*>(room) + i); }
  Slab* next = nullptr;
  alignas(Request) std::byte room[kRequests * sizeof(Request)];
};

RequestSupply::~RequestSupply() {
  while (Slab* const slab = slabs_.load(std::memory_order_acquire)) {
    slabs_.store(slab->next, std::memory_order_relaxed);
    Slab::destroy(slab);
  }
}

Status RequestSupply::make(Instances& home, Request** out) noexcept {
  void* const place = home.memory().try_allocate(sizeof(Slab), alignof(Slab));
  if (place == nullptr) return out_of_memory();
  Slab* const slab = new (place) Slab(home);
  slab->next = slabs_.load(std::memory_order_relaxed);
  while (
      !slabs_.compare_exchange_weak(slab->next, slab, std::memory_order_release, std::memory_order_relaxed)) {
  }
  spares_.put_back(slab->request(1), slab->request(Slab::kRequests - 1));
  *out = &slab->request(0);
  return kOk;
}

}  // namespace dist
