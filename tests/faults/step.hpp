// SPDX-License-Identifier: Apache-2.0
// One member's part of a collective. Its memory (tensors, shapes and tag) is overwritten and freed as soon as
// the caller owns it again, so that late accesses are detected.
#pragma once

#include <array>
#include <memory>
#include <string>
#include <vector>

#include "tests/faults/cell.hpp"

namespace faults {

class Step {
 public:
  // `kind` is a DIST_COLLECTIVE_... constant. `wrong` is how the call differs from those of the peers; faults
  // of other kinds do not change the call.
  struct Recipe {
    int32_t kind;
    Form form;
    Size size;
    std::string tag;
    const dist_group* group = nullptr;
    int64_t timeout_ns = 0;
    bool own_operator = false;  // all reductions use an operator of the host
    Fault wrong = Fault::kEarlyReturn;
    bool flat = false;  // tensors of one dimension
  };

  Step(dist_replica* replica, const Recipe& recipe);
  ~Step();
  Step(const Step&) = delete;
  Step& operator=(const Step&) = delete;

  // Makes the plan, if the form is planned.
  dist_status prepare();
  // Starts it, unless it is blocking.
  dist_status begin();
  // Completes it, and frees its memory.
  dist_status end();
  dist_status all() {
    dist_status status = prepare();
    if (status == DIST_OK) status = begin();
    return status == DIST_OK ? end() : status;
  }
  // Starts another round on the same memory, if it is planned or blocking.
  dist_status cancel() { return dist_work_cancel(work_); }

 private:
  struct Block {
    std::unique_ptr<std::byte[]> memory;
    std::size_t bytes;
  };

  void* take(std::size_t bytes);
  template <class T>
  T* take_pair(T first, T second);
  std::array<int64_t, 2> shape_of(bool gives, int64_t columns) const;
  void make_lists();
  void ruin(std::vector<Block>& blocks);
  dist_status call();
  dist_status call_on_tensors(const dist_collective_options& options, dist_work** out_work);
  dist_status exchange_halos(const dist_collective_options& options);
  dist_status reshard(const dist_collective_options& options);

  dist_replica* const replica_;
  const Recipe recipe_;
  std::vector<Block> data_;
  std::vector<Block> descriptions_;
  char* tag_ = nullptr;
  dist_tensor* in_ = nullptr;
  dist_tensor* out_ = nullptr;
  std::size_t n_ = 0;
  dist_work* work_ = nullptr;
};

}  // namespace faults
