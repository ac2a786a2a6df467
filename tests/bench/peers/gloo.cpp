// SPDX-License-Identifier: Apache-2.0
// Gloo over TCP on loopback, its only transport between processes of one machine, with each of its
// algorithms. Its ranks are forked processes or threads.
#include <gloo/allgather.h>
#include <gloo/allreduce.h>
#include <gloo/allreduce_halving_doubling.h>
#include <gloo/allreduce_ring_chunked.h>
#include <gloo/barrier.h>
#include <gloo/broadcast.h>
#include <gloo/config.h>
#include <gloo/math.h>
#include <gloo/reduce.h>
#include <gloo/rendezvous/context.h>
#include <gloo/rendezvous/file_store.h>
#include <gloo/rendezvous/hash_store.h>
#include <gloo/rendezvous/prefix_store.h>
#include <gloo/transport/tcp/device.h>
#include <pthread.h>

#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <thread>

#include "tests/bench/peers/team.hpp"

namespace {

using namespace bench;
using GlooContext = std::shared_ptr<gloo::rendezvous::Context>;
using Device = std::shared_ptr<gloo::transport::Device>;
using Reduce = void (*)(void*, const void*, const void*, size_t);

constexpr std::chrono::seconds kDeadline{2};  // deadline of calls that a fault may affect

// Returns the function for the element type and the operator of a call.
template <class T>
Reduce reduce_function(bool maximum) {
  return maximum ? static_cast<Reduce>(&gloo::max<T>) : static_cast<Reduce>(&gloo::sum<T>);
}

std::string name() {
  return "Gloo " + std::to_string(GLOO_VERSION_MAJOR) + "." + std::to_string(GLOO_VERSION_MINOR) + "." +
         std::to_string(GLOO_VERSION_PATCH);
}

class Gloo final : public peers::Library {
 public:
  // The ranks find each other by the store, and communicate over the device.
  Gloo(int rank, int ranks, gloo::rendezvous::Store& store, Device device, std::string form)
      : store_(store),
        device_(std::move(device)),
        context_(std::make_shared<gloo::rendezvous::Context>(rank, ranks)),
        ranks_(std::move(form)) {
    context_->connectFullMesh(store_, device_);
  }

  peers::Words forms() const override {
    peers::Words forms{"ring", "bcube", "halving-doubling", "chunked ring"};
    for (std::string& form : forms) form.insert(0, ranks_ + ", ");
    return forms;
  }

  void meet() override {
    gloo::BarrierOptions options(context_);
    gloo::barrier(options);
  }

  std::function<void()> operation(const peers::Request& request, Data* data) override {
    const std::string algorithm = request.form.substr(request.form.find(", ") + 2);
    if (request.operation == Operation::kBarrier && algorithm == "ring") return [this] { meet(); };
    if (request.operation != Operation::kAllReduce || request.dtype != DIST_F32) return {};
    if (request.layout == Layout::kOneOutput) return {};
    const bool in_place = request.layout == Layout::kInPlace;
    if (algorithm == "ring") return by_function(gloo::AllreduceOptions::Algorithm::RING, *data, in_place);
    if (algorithm == "bcube") return by_function(gloo::AllreduceOptions::Algorithm::BCUBE, *data, in_place);
    if (!in_place) return {};  // these classes have a single buffer
    return algorithm == "chunked ring" ? by_class<gloo::AllreduceRingChunked<float>>(*data)
                                       : by_class<gloo::AllreduceHalvingDoubling<float>>(*data);
  }

  // Each call has its own tag and a deadline.
  void exchange(const peers::Exchange& mine) override {
    mine.integers ? exchange_as<int32_t>(mine) : exchange_as<float>(mine);
  }
  double deadline_us() const override { return std::chrono::microseconds(kDeadline).count(); }
  bool starts_alone() const override { return true; }
  void start_anew() override {
    gloo::rendezvous::PrefixStore store("anew", store_);
    gloo::rendezvous::Context context(context_->rank, context_->size);
    context.setTimeout(kDeadline);
    context.connectFullMesh(store, device_);
  }
  [[noreturn]] void vanish() override {
    if (ranks_ == "threads") pthread_exit(nullptr);
    Library::vanish();
  }

 private:
  template <class T>
  void exchange_as(const peers::Exchange& mine) {
    auto* const in = static_cast<T*>(const_cast<void*>(mine.in));  // not const, although it is only read
    auto* const out = static_cast<T*>(mine.out);
    const auto call = [&](auto function, auto& options) {
      options.setTag(static_cast<uint32_t>(mine.tag));
      options.setTimeout(kDeadline);
      function(options);
    };
    switch (mine.collective) {
      case peers::Collective::kAllReduce: {
        gloo::AllreduceOptions options(context_);
        options.setInput(in, mine.count);
        options.setOutput(out, mine.count);
        options.setReduceFunction(reduce_function<T>(mine.maximum));
        return call([](auto& o) { gloo::allreduce(o); }, options);
      }
      case peers::Collective::kReduce: {
        gloo::ReduceOptions options(context_);
        options.setInput(in, mine.count);
        options.setOutput(out, mine.count);
        options.setReduceFunction(reduce_function<T>(mine.maximum));
        options.setRoot(mine.root);
        return call(gloo::reduce, options);
      }
      case peers::Collective::kAllGather: {
        gloo::AllgatherOptions options(context_);
        options.setInput(in, mine.count);
        options.setOutput(out, mine.count * static_cast<size_t>(context_->size));
        return call(gloo::allgather, options);
      }
      case peers::Collective::kBroadcast: {
        gloo::BroadcastOptions options(context_);
        std::memcpy(out, in, mine.count * sizeof(T));
        options.setOutput(out, mine.count);
        options.setRoot(mine.root);
        return call(gloo::broadcast, options);
      }
      case peers::Collective::kBarrier: {
        gloo::BarrierOptions options(context_);
        return call(gloo::barrier, options);
      }
    }
  }

  std::function<void()> by_function(gloo::AllreduceOptions::Algorithm algorithm, Data& data, bool in_place) {
    auto* const in = static_cast<float*>(data.in(context_->rank));
    auto* const out = static_cast<float*>(data.out(context_->rank));
    const size_t count = data.count();
    return [this, algorithm, in, out, count, in_place] {
      gloo::AllreduceOptions options(context_);
      if (!in_place) options.setInput(in, count);
      options.setOutput(out, count);
      options.setAlgorithm(algorithm);
      options.setReduceFunction(reduce_function<float>(false));
      gloo::allreduce(options);
    };
  }

  template <class Algorithm>
  std::function<void()> by_class(Data& data) {
    const std::vector<float*> buffers{static_cast<float*>(data.in(context_->rank))};
    auto algorithm = std::make_shared<Algorithm>(context_, buffers, static_cast<int>(data.count()));
    return [algorithm] { algorithm->run(); };
  }

  gloo::rendezvous::Store& store_;
  Device device_;
  GlooContext context_;
  std::string ranks_;
};

Device loopback() {
  gloo::transport::tcp::attr attributes;
  attributes.hostname = "127.0.0.1";
  return gloo::transport::tcp::CreateDevice(attributes);
}

void serve_rank(peers::Seat& seat, gloo::rendezvous::Store& store, const Device& device, const char* ranks) {
  Gloo gloo(seat.rank(), seat.ranks(), store, device, ranks);
  if (!peers::serve(seat, gloo, name())) return;
  gloo.meet();  // all ranks disconnect together, because a broken connection is an exception
}

void run_threads(int ranks) {
  std::vector<peers::Seat> seats = peers::make_seats(ranks);
  gloo::rendezvous::HashStore store;
  const auto device = loopback();
  std::atomic<bool> failed{false};
  std::vector<std::thread> threads;
  for (peers::Seat& seat : seats) {
    threads.emplace_back([&] {
      try {
        serve_rank(seat, store, device, "threads");
      } catch (const std::exception& error) {
        std::fprintf(stderr, "gloo: %s\n", error.what());
        failed = true;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  if (failed) throw std::runtime_error("a rank failed");
}

void run_processes(int ranks) {
  std::string folder = std::filesystem::temp_directory_path() / "dist_bench-gloo-XXXXXX";
  if (mkdtemp(folder.data()) == nullptr) throw std::runtime_error(folder + " cannot be made");
  peers::run_forked(ranks, [&](peers::Seat& seat) {
    gloo::rendezvous::FileStore store(folder);
    serve_rank(seat, store, loopback(), "processes");
  });
  std::filesystem::remove_all(folder);
}

}  // namespace

int main(int argc, char** argv) {
  const int ranks = peers::ranks_argument(argc, argv, 1);
  try {
    argc > 2 && std::string(argv[2]) == "threads" ? run_threads(ranks) : run_processes(ranks);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "gloo: %s\n", error.what());
    std::_Exit(1);
  }
  return 0;
}
