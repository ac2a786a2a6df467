// SPDX-License-Identifier: Apache-2.0
#include "tests/bench/servers/plain.hpp"

#include <grpcpp/generic/async_generic_service.h>
#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/grpcpp.h>

#include <algorithm>
#include <cstring>
#include <future>
#include <stdexcept>

namespace bench::servers {
namespace {

constexpr char kPush[] = "/bench/push", kPull[] = "/bench/pull";

void copy(const grpc::ByteBuffer& from, std::vector<std::byte>& to) {
  std::vector<grpc::Slice> slices;
  (void)from.Dump(&slices);
  std::size_t at = 0;
  for (const grpc::Slice& each : slices) {
    std::memcpy(to.data() + at, each.begin(), std::min(each.size(), to.size() - at));
    at += each.size();
  }
}

grpc::Slice view(const std::vector<std::byte>& of) {
  return {const_cast<std::byte*>(of.data()), of.size(), grpc::Slice::STATIC_SLICE};
}

class Service final : public grpc::CallbackGenericService {
 public:
  explicit Service(std::size_t bytes) : resident_(bytes) {}

 private:
  class Call final : public grpc::ServerGenericBidiReactor {
   public:
    Call(std::vector<std::byte>& resident, bool pushes) : resident_(resident), pushes_(pushes) {
      StartRead(&in_);
    }
    void OnReadDone(bool ok) override {
      if (!ok) return Finish({});
      if (pushes_) copy(in_, resident_);
      const grpc::Slice answer = pushes_ ? grpc::Slice("k") : view(resident_);
      out_ = grpc::ByteBuffer(&answer, 1);
      StartWriteAndFinish(&out_, {}, {});
    }
    void OnDone() override { delete this; }

   private:
    std::vector<std::byte>& resident_;
    const bool pushes_;
    grpc::ByteBuffer in_, out_;
  };
  grpc::ServerGenericBidiReactor* CreateReactor(grpc::GenericCallbackServerContext* context) override {
    return new Call(resident_, context->method() == kPush);
  }

  std::vector<std::byte> resident_;
};

}  // namespace

struct PlainServer::Running {
  explicit Running(std::size_t bytes) : service(bytes) {}
  Service service;
  int port = 0;
  std::unique_ptr<grpc::Server> server;
};

PlainServer::PlainServer(std::size_t bytes) : running_(std::make_unique<Running>(bytes)) {
  grpc::ServerBuilder builder;
  builder.AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(), &running_->port);
  builder.RegisterCallbackGenericService(&running_->service);
  builder.SetMaxReceiveMessageSize(-1);
  running_->server = builder.BuildAndStart();
}

PlainServer::~PlainServer() = default;

std::string PlainServer::address() const { return "127.0.0.1:" + std::to_string(running_->port); }

struct PlainClient::Stub {
  explicit Stub(const std::shared_ptr<grpc::Channel>& channel) : stub(channel) {}

  grpc::ByteBuffer call(const char* method, const grpc::Slice& slice) {
    grpc::ClientContext context;
    grpc::ByteBuffer in(&slice, 1), out;
    std::promise<bool> ended;
    stub.UnaryCall(&context, method, {}, &in, &out,
                   [&](const grpc::Status& status) { ended.set_value(status.ok()); });
    if (!ended.get_future().get()) throw std::runtime_error("plain gRPC failed");
    return out;
  }

  grpc::GenericStub stub;
};

PlainClient::PlainClient(const std::string& address) {
  grpc::ChannelArguments arguments;
  arguments.SetMaxReceiveMessageSize(-1);
  stub_ = std::make_unique<Stub>(
      grpc::CreateCustomChannel(address, grpc::InsecureChannelCredentials(), arguments));
}

PlainClient::~PlainClient() = default;

void PlainClient::push(const std::vector<std::byte>& from) { (void)stub_->call(kPush, view(from)); }

void PlainClient::pull(std::vector<std::byte>& into) { copy(stub_->call(kPull, grpc::Slice("p")), into); }

}  // namespace bench::servers
