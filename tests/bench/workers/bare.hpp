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
  // Worker 0 listens there; the others come. Throws std::runtime_error.
  Bare(int me, int workers, const std::string& address);
  ~Bare();
  Bare(const Bare&) = delete;
  Bare& operator=(const Bare&) = delete;

  // Each other worker sends `bytes` to worker 0, which sends as many back when they have come.
  void round_trip(std::size_t bytes);
  // Each sends and receives them at once.
  void exchange(std::size_t bytes);

 private:
  struct Ends;
  std::unique_ptr<Ends> ends_;
};

}  // namespace bench
