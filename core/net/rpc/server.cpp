// SPDX-License-Identifier: Apache-2.0
#include "core/net/rpc/server.hpp"

#include <algorithm>
#include <cstdio>
#include <string_view>

#include "core/base/text.hpp"
#include "core/net/rpc/answer.hpp"
#include "core/net/rpc/job_calls.hpp"
#include "core/net/rpc/message.hpp"

namespace dist {
namespace {

constexpr char kAddress[] = "the server's address";

}  // namespace

Status RpcServer::create(Memory& memory, const RpcServerOptions& options, Ref<RpcServer>* out) {
  if (options.num_threads < 0 || options.num_threads > kMostThreads) {
    return invalid_argument("`num_threads` is %d; use 1 to %d, or 0 for %d", options.num_threads,
                            kMostThreads, kDefaultThreads);
  }
  if (options.max_queued < 0 || options.max_queued > kMostQueued) {
    return invalid_argument("`max_queued` is %d; use 1 to %d, or 0 for %d", options.max_queued, kMostQueued,
                            kDefaultQueued);
  }
  HostAndPort parsed;
  if (!parse_address(options.address, 0, &parsed)) {
    return invalid_argument("%s is \"%s\", but must be %s, or 0 to let the system choose one", kAddress,
                            Shown(options.address).c_str(), kAddressForm);
  }
  *out = make_counted<RpcServer>(memory, options);
  return kOk;
}

RpcServer::RpcServer(Memory& memory, const RpcServerOptions& options)
    : Counted(memory),
      address_(options.address, &memory),
      num_threads_(
          static_cast<std::size_t>(options.num_threads == 0 ? kDefaultThreads : options.num_threads)),
      methods_(&memory),
      threads_(memory, *this,
               static_cast<std::size_t>(options.max_queued == 0 ? kDefaultQueued : options.max_queued)) {}

RpcServer::~RpcServer() {
  if (memory().forked()) return;
  (void)stop("the end of a server");
  for (const auto& [name, method] : methods_) {
    if (method.end != nullptr) method.end(method.host);
  }
}

Status RpcServer::add(const char* name, const RpcMethod& method) {
  if (started_) {
    return failed_precondition("the server has already started. Register methods before starting it.");
  }
  DIST_TRY(check_method_name(name, "the name of a method"));
  const std::string_view text(name);
  if (text.substr(0, 5) == "dist.") {
    return invalid_argument("%s: names that start with dist. are reserved for libdist", Shown(name).c_str());
  }
  if (methods_.find(text) != methods_.end()) {
    return fail(DIST_ALREADY_EXISTS, "method %s is already registered", Shown(name).c_str());
  }
  methods_.emplace(text, method);
  return kOk;
}

Status RpcServer::start() {
  if (memory().forked())
    return failed_precondition(
        "this is a forked child of the server's process. Create another one in the child.");
  if (started_) return failed_precondition("the server has already been started");
  // The server listens by address; the name by which clients call it need not be one of this machine.
  HostAndPort parsed;
  const bool is_number = parse_address(address_.c_str(), 0, &parsed) && parsed.is_number();
  const std::pmr::string bind_address =
      is_number ? address_ : default_bind_address(memory(), address_.c_str());
  DIST_TRY(create_job_calls(memory(), {bind_address.c_str(), kAddress, address_.c_str(), false, this, {}},
                            &calls_));
  started_ = true;
  const std::size_t colon = address_.rfind(':');
  address_.resize(colon + 1);
  address_ += std::to_string(calls_->port());
  const Status made = threads_.start(num_threads_, "rpc");
  if (!made.ok()) calls_ = {};
  return made;
}

Status RpcServer::stop(const char* call) noexcept {
  if (threads_.inside()) {
    return failed_precondition("`%s()`: this `thread` is in one of the server's methods", call);
  }
  threads_.stop("the server is shutting down");
  calls_ = {};
  return kOk;
}

// ---- Execution ----

void RpcServer::run(IncomingCall& call, Cancel& cancel) noexcept {
  try {
    const Ref<CallMessage> request = Ref<CallMessage>::share(&call.request());
    std::string_view name;
    ValueRef arguments;
    ValueRef result;
    Status done = read_message(memory(), request, &name, &arguments);
    if (done.ok() && name == kMethods) {
      done = list(&result);
    } else if (done.ok()) {
      const auto found = methods_.find(name);
      if (found == methods_.end()) {
        done = fail(DIST_NOT_FOUND, "the server has no method %s", Shown(std::string(name).c_str()).c_str());
      } else {
        const RpcContext context{found->first.c_str(), &cancel, call.timeout_ns()};
        const RpcMethod& method = found->second;
        Value* given = nullptr;
        const uint64_t before = failures_on_this_thread();
        const dist_status code = method.function(context, arguments.get(), &given, method.host);
        result = ValueRef::adopt(given);
        done = sendable(code, before, "the method");
      }
    }
    if (!done.ok()) return answer_failure(call, done);
    answer_with(call, result.get());
  } catch (const std::bad_alloc&) {
    call.answer(DIST_RESOURCE_EXHAUSTED, "the server is out of memory", {});
  }
}

Status RpcServer::list(ValueRef* out) {
  std::pmr::vector<ValueRef> names(&memory());
  for (const auto& [name, method] : methods_) names.push_back(Value::create_text(memory(), name.c_str()));
  std::pmr::vector<Value*> plain(&memory());
  for (const ValueRef& each : names) plain.push_back(each.get());
  return Value::create(memory(), DIST_VALUE_LIST, plain, out);
}

}  // namespace dist
