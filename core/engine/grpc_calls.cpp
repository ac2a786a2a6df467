// SPDX-License-Identifier: Apache-2.0
#include "core/engine/grpc_calls.hpp"

#include "core/base/text.hpp"
#include "core/engine/grpc_library.hpp"

namespace dist {
namespace {

constexpr char kWho[] = "processes of the job";

}  // namespace

Status GrpcCalls::create(Memory& memory, const GrpcCallOptions& options, Ref<GrpcCalls>* out) {
  DIST_TRY(check_security(options));
  if (options.bind_address != nullptr) {
    HostAndPort bind;
    if (!parse_address(options.bind_address, 0, &bind)) {
      return invalid_argument(
          "the address is %s, but must be host:port or [v6]:port, with a port of 1 to 65535, or 0 to let the "
          "system choose one",
          Shown(options.bind_address).c_str());
    }
    DIST_TRY(check_exposure(options, bind.is_loopback(), kWho));
  }
  const GrpcModule* module = nullptr;
  DIST_TRY(find_grpc_library(false, options.module, &module));
  Ref<GrpcCalls> made = make_counted<GrpcCalls>(memory, *module, options);
  char why[sizeof ErrorRecord::message] = "";
  const dist_status code = module->start_calls(
      {options.bind_address, options.secret, options.ca, options.certificate, options.key,
       options.lease_ns == 0 ? kDefaultLeaseNs : options.lease_ns, options.limits, options.handler, &memory},
      &made->network_, why, sizeof why);
  if (code != DIST_OK) return fail(code, "%s", why);
  *out = std::move(made);
  return kOk;
}

GrpcCalls::~GrpcCalls() {
  // A forked child has none of the library's threads and must not touch its objects.
  if (network_ != nullptr && !memory().forked()) module_.stop_calls(network_);
}

Status GrpcCalls::open(const char* call, const char* address, CallChannel** out) noexcept {
  HostAndPort parsed;
  if (!parse_address(address, 1, &parsed)) {
    return invalid_argument(
        "%s: the address is %s, but must be host:port or [v6]:port, with a port of 1 to 65535", call,
        Shown(address).c_str());
  }
  LinkSecurity security;
  security.ca = tls_ ? "" : nullptr;
  security.secret = secret_ ? "" : nullptr;
  security.allow_plaintext = allow_plaintext_;
  DIST_TRY(check_exposure(security, parsed.is_loopback(), kWho));
  *out = network_->open(address);
  return *out != nullptr ? kOk : out_of_memory();
}

void GrpcCalls::close(CallChannel* channel) noexcept {
  if (!memory().forked()) network_->close(channel);
}

}  // namespace dist
