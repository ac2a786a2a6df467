// SPDX-License-Identifier: Apache-2.0
#include "core/net/grpc_calls.hpp"

#include <string>

#include "core/base/os/addresses.hpp"
#include "core/base/text.hpp"
#include "core/net/grpc_library.hpp"

namespace dist {
namespace {

constexpr char kWho[] = "processes of the job";

const char* value_of(const GrpcCallOptions& options) noexcept {
  return options.bind_value != nullptr ? options.bind_value : options.bind_address;
}

Status cannot_listen(const GrpcCallOptions& options, const std::string& why) noexcept {
  return fail(DIST_UNAVAILABLE, "%s is \"%s\", but this process %s", options.bind_name,
              Shown(value_of(options)).c_str(), why.c_str());
}

}  // namespace

Status GrpcCalls::create(Memory& memory, const GrpcCallOptions& options, Ref<GrpcCalls>* out) {
  DIST_TRY(check_security(options));
  if (options.bind_address != nullptr) {
    HostAndPort bind;
    if (!parse_address(options.bind_address, 0, &bind)) {
      return invalid_argument("%s is \"%s\", but must be %s, or 0 to let the system choose one",
                              options.bind_name, Shown(value_of(options)).c_str(), kAddressForm);
    }
    Exposed exposed;
    if (!bind.is_loopback()) exposed.add(options.bind_name, value_of(options));
    if (exposed.any() && bind.is_number()) {
      // If the address is wrong, that is reported rather than what the address would otherwise require.
      const std::string why = why_not_bind(std::string(bind.host), 0);
      if (!why.empty()) return cannot_listen(options, "cannot listen there: " + why);
    }
    DIST_TRY(check_exposure(options, exposed, kWho));
  }
  const GrpcModule* module = nullptr;
  DIST_TRY(find_grpc_library(options.module_folder, &module));
  Ref<GrpcCalls> made = make_counted<GrpcCalls>(memory, *module, options);
  char why[sizeof ErrorRecord::message] = "";
  LinkSecurity security = options;
  security.lease_ns = made->lease_ns();
  const dist_status code =
      module->start_calls({options.bind_address, security, options.limits, options.handler, &memory},
                          &made->network_, why, sizeof why);
  if (code == DIST_UNAVAILABLE && options.bind_address != nullptr) return cannot_listen(options, why);
  if (code != DIST_OK) return fail(code, "%s", why);
  *out = std::move(made);
  return kOk;
}

GrpcCalls::~GrpcCalls() {
  // A forked child has none of gRPC's threads and must not touch its objects.
  if (network_ != nullptr && !memory().forked()) module_.stop_calls(network_);
}

Status GrpcCalls::open(const char* call, const char* address, CallChannel** out) noexcept {
  HostAndPort parsed;
  if (!parse_address(address, 1, &parsed)) {
    return invalid_argument("%s: the address is \"%s\", but must be %s", call, Shown(address).c_str(),
                            kAddressForm);
  }
  LinkSecurity security;
  security.ca = tls_ ? "" : nullptr;
  security.secret = secret_ ? "" : nullptr;
  security.allow_plaintext = allow_plaintext_;
  Exposed exposed;
  exposed.add("the server's address", address);
  DIST_TRY(check_exposure(security, exposed, kWho));
  *out = network_->open(address);
  return *out != nullptr ? kOk : out_of_memory();
}

void GrpcCalls::close(CallChannel* channel) noexcept {
  if (!memory().forked()) network_->close(channel);
}

}  // namespace dist
