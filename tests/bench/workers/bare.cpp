// SPDX-License-Identifier: Apache-2.0
#include "tests/bench/workers/bare.hpp"

#include <grpcpp/generic/async_generic_service.h>
#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/grpcpp.h>

#include <chrono>
#include <stdexcept>

namespace bench {
namespace {

constexpr char kMethod[] = "/bench.Bare/Stream";
constexpr int kGuardS = 100;
constexpr std::size_t kMostBytes = std::size_t{64} << 20;

// One end of a stream: the common part of server and client.
class End {
 public:
  virtual ~End() = default;
  virtual void write(const grpc::ByteBuffer& message, void* tag) = 0;
  virtual void read(grpc::ByteBuffer* message, void* tag) = 0;
  grpc::ByteBuffer received;
};

class ServerEnd final : public End {
 public:
  void write(const grpc::ByteBuffer& message, void* tag) override { stream.Write(message, tag); }
  void read(grpc::ByteBuffer* message, void* tag) override { stream.Read(message, tag); }
  grpc::GenericServerContext context;
  grpc::GenericServerAsyncReaderWriter stream{&context};
};

class ClientEnd final : public End {
 public:
  void write(const grpc::ByteBuffer& message, void* tag) override { stream->Write(message, tag); }
  void read(grpc::ByteBuffer* message, void* tag) override { stream->Read(message, tag); }
  grpc::ClientContext context;
  std::unique_ptr<grpc::GenericClientAsyncReaderWriter> stream;
};

// Tags identify the end, and whether the operation was a read.
void* tag_of(std::size_t end, bool reads) { return reinterpret_cast<void*>(end * 2 + (reads ? 1 : 0)); }

}  // namespace

struct Bare::Ends {
  bool serves = false;
  grpc::AsyncGenericService service;
  std::unique_ptr<grpc::ServerCompletionQueue> server_queue;
  std::unique_ptr<grpc::Server> server;
  std::unique_ptr<grpc::CompletionQueue> client_queue;
  std::shared_ptr<grpc::Channel> channel;
  std::unique_ptr<grpc::GenericStub> stub;
  std::vector<std::unique_ptr<End>> all;
  std::vector<char> data = std::vector<char>(kMostBytes, 1);

  grpc::CompletionQueue& queue() { return serves ? *server_queue : *client_queue; }
  // Returns the tag of the next operation that completes.
  std::size_t next() {
    void* tag = nullptr;
    bool well = false;
    const auto end = std::chrono::system_clock::now() + std::chrono::seconds(kGuardS);
    if (queue().AsyncNext(&tag, &well, end) != grpc::CompletionQueue::GOT_EVENT || !well)
      throw std::runtime_error("a stream of gRPC's is over");
    return reinterpret_cast<std::size_t>(tag);
  }
  grpc::ByteBuffer message(std::size_t bytes) const {
    const grpc::Slice slice(data.data(), bytes, grpc::Slice::STATIC_SLICE);
    return {&slice, 1};
  }
  void check(const End& end, std::size_t bytes) const {
    if (end.received.Length() != bytes) throw std::runtime_error("a message of another size");
  }
};

Bare::Bare(int me, int workers, const std::string& address) : ends_(std::make_unique<Ends>()) {
  Ends& ends = *ends_;
  ends.serves = me == 0;
  if (ends.serves) {
    grpc::ServerBuilder builder;
    builder.AddListeningPort(address, grpc::InsecureServerCredentials());
    builder.RegisterAsyncGenericService(&ends.service);
    builder.SetMaxReceiveMessageSize(-1);
    ends.server_queue = builder.AddCompletionQueue();
    ends.server = builder.BuildAndStart();
    if (ends.server == nullptr) throw std::runtime_error("cannot listen on " + address);
    for (int w = 1; w < workers; ++w) {
      auto end = std::make_unique<ServerEnd>();
      ends.service.RequestCall(&end->context, &end->stream, ends.server_queue.get(), ends.server_queue.get(),
                               tag_of(ends.all.size(), false));
      ends.all.push_back(std::move(end));
    }
    for (int w = 1; w < workers; ++w) (void)ends.next();
    return;
  }
  grpc::ChannelArguments with;
  with.SetMaxReceiveMessageSize(-1);
  with.SetInt(GRPC_ARG_ENABLE_HTTP_PROXY, 0);
  ends.client_queue = std::make_unique<grpc::CompletionQueue>();
  ends.channel = grpc::CreateCustomChannel(address, grpc::InsecureChannelCredentials(), with);
  ends.stub = std::make_unique<grpc::GenericStub>(ends.channel);
  auto end = std::make_unique<ClientEnd>();
  end->context.set_wait_for_ready(true);
  end->stream = ends.stub->PrepareCall(&end->context, kMethod, ends.client_queue.get());
  end->stream->StartCall(tag_of(0, false));
  ends.all.push_back(std::move(end));
  (void)ends.next();
}

Bare::~Bare() {
  Ends& ends = *ends_;
  if (ends.server != nullptr) ends.server->Shutdown(std::chrono::system_clock::now());
  if (!ends.serves && !ends.all.empty()) static_cast<ClientEnd&>(*ends.all[0]).context.TryCancel();
  ends.queue().Shutdown();
  void* tag = nullptr;
  bool well = false;
  while (ends.queue().Next(&tag, &well)) {
  }
}

void Bare::round_trip(std::size_t bytes) {
  Ends& ends = *ends_;
  const grpc::ByteBuffer message = ends.message(bytes);
  const std::size_t n = ends.all.size();
  for (std::size_t i = 0; i < n; ++i) {
    if (!ends.serves) ends.all[i]->write(message, tag_of(i, false));
    ends.all[i]->read(&ends.all[i]->received, tag_of(i, true));
  }
  for (std::size_t left = 2 * n; left > 0; --left) {
    const std::size_t tag = ends.next();
    if (tag % 2 == 0) continue;
    ends.check(*ends.all[tag / 2], bytes);
    if (ends.serves) ends.all[tag / 2]->write(message, tag_of(tag / 2, false));
  }
}

void Bare::exchange(std::size_t bytes) {
  Ends& ends = *ends_;
  const grpc::ByteBuffer message = ends.message(bytes);
  const std::size_t n = ends.all.size();
  for (std::size_t i = 0; i < n; ++i) {
    ends.all[i]->write(message, tag_of(i, false));
    ends.all[i]->read(&ends.all[i]->received, tag_of(i, true));
  }
  for (std::size_t left = 2 * n; left > 0; --left) {
    const std::size_t tag = ends.next();
    if (tag % 2 == 1) ends.check(*ends.all[tag / 2], bytes);
  }
}

}  // namespace bench
