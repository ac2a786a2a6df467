// SPDX-License-Identifier: Apache-2.0
// The raw speed of gRPC between the same processes: streams of bytes between worker 0 and every other worker,
// without a copy on either side. Each worker's thread drives its own ends.
#pragma once

#include <memory>
#include <string>
#include <vector>

namespace bench {

class Bare {
 public:
  // Worker 0 listens at this address, and the others connect. Throws std::runtime_error.
  Bare(int me, int workers, const std::string& address);
  ~Bare();
  Bare(const Bare&) = delete;
  Bare& operator=(const Bare&) = delete;

  // Each other worker sends `bytes` to worker 0, which sends the same number back when they have arrived.
  void round_trip(std::size_t bytes);
  // Each end sends and receives at the same time.
  void exchange(std::size_t bytes);

 private:
  struct Ends;
  std::unique_ptr<Ends> ends_;
};

}  // namespace bench
