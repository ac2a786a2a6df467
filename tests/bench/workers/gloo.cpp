// SPDX-License-Identifier: Apache-2.0
// Two algorithms of Gloo's newer functions work out of place, as libdist does. Two of its older classes have
// a single buffer and sum in place; their turns are shortened so that no sum leaves the type's range.
#include "tests/bench/workers/gloo.hpp"

#include <gloo/allreduce.h>
#include <gloo/allreduce_halving_doubling.h>
#include <gloo/allreduce_ring_chunked.h>
#include <gloo/config.h>
#include <gloo/math.h>
#include <gloo/rendezvous/context.h>
#include <gloo/rendezvous/file_store.h>
#include <gloo/transport/tcp/device.h>

#include <algorithm>

#include "tests/bench/harness.hpp"

namespace bench {
namespace {

using Context = std::shared_ptr<gloo::rendezvous::Context>;
using Reduce = void (*)(void*, const void*, const void*, std::size_t);

constexpr int kMostInARow = 10;

class FunctionTurns final : public Turns {
 public:
  FunctionTurns(Context context, gloo::AllreduceOptions::Algorithm algorithm, Tensors& tensors)
      : context_(std::move(context)), algorithm_(algorithm), tensors_(tensors) {}

  double take(Page& page, const Size& size, int operations) override {
    const std::size_t elements = size.bytes / sizeof(float);
    tensors_.fill(elements);
    page.meet();
    once(elements);  // brings all workers to the same point
    const double begin = now_us();
    for (int i = 0; i < operations; ++i) once(elements);
    const double us = now_us() - begin;
    tensors_.check(tensors_.out, elements, 1);
    return us / operations;
  }

 private:
  void once(std::size_t elements) {
    gloo::AllreduceOptions options(context_);
    options.setInput(tensors_.in.data(), elements);
    options.setOutput(tensors_.out.data(), elements);
    options.setAlgorithm(algorithm_);
    options.setReduceFunction(static_cast<Reduce>(&gloo::sum<float>));
    gloo::allreduce(options);
  }

  Context context_;
  gloo::AllreduceOptions::Algorithm algorithm_;
  Tensors& tensors_;
};

template <class Algorithm>
class ClassTurns final : public Turns {
 public:
  ClassTurns(Context context, Tensors& tensors) : context_(std::move(context)), tensors_(tensors) {}

  double take(Page& page, const Size& size, int operations) override {
    const std::size_t elements = size.bytes / sizeof(float);
    if (elements != elements_) {
      page.meet();  // all workers must create an algorithm's buffers at the same time
      algorithm_ = std::make_unique<Algorithm>(context_, std::vector<float*>{tensors_.in.data()},
                                               static_cast<int>(elements));
      elements_ = elements;
    }
    double us = 0;
    for (int left = operations; left > 0; left -= kMostInARow) {
      const int now = std::min(left, kMostInARow);
      tensors_.fill(elements);
      page.meet();
      algorithm_->run();  // brings all workers to the same point
      const double begin = now_us();
      for (int i = 0; i < now; ++i) algorithm_->run();
      us += now_us() - begin;
      tensors_.check(tensors_.in, elements, now + 1);
    }
    return us / operations;
  }

 private:
  Context context_;
  Tensors& tensors_;
  std::size_t elements_ = 0;
  std::unique_ptr<Algorithm> algorithm_;
};

}  // namespace

std::string gloo_name() {
  return "Gloo " + std::to_string(GLOO_VERSION_MAJOR) + "." + std::to_string(GLOO_VERSION_MINOR) + "." +
         std::to_string(GLOO_VERSION_PATCH);
}

std::vector<std::string> gloo_algorithms() { return {"ring", "bcube", "halving-doubling", "chunked ring"}; }

std::vector<std::unique_ptr<Turns>> gloo_turns(const Page& page, int me, Tensors& tensors) {
  gloo::transport::tcp::attr attributes;
  attributes.hostname = "127.0.0.1";
  const auto device = gloo::transport::tcp::CreateDevice(attributes);
  gloo::rendezvous::FileStore store(page.gloo_folder.data());
  auto context = std::make_shared<gloo::rendezvous::Context>(me, page.workers);
  std::shared_ptr<gloo::transport::Device> any = device;
  context->connectFullMesh(store, any);
  std::vector<std::unique_ptr<Turns>> all;
  all.push_back(std::make_unique<FunctionTurns>(context, gloo::AllreduceOptions::Algorithm::RING, tensors));
  all.push_back(std::make_unique<FunctionTurns>(context, gloo::AllreduceOptions::Algorithm::BCUBE, tensors));
  all.push_back(std::make_unique<ClassTurns<gloo::AllreduceHalvingDoubling<float>>>(context, tensors));
  all.push_back(std::make_unique<ClassTurns<gloo::AllreduceRingChunked<float>>>(context, tensors));
  return all;
}

}  // namespace bench
