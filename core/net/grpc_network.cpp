// SPDX-License-Identifier: Apache-2.0
#include "core/net/grpc_network.hpp"

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <string>
#include <string_view>
#include <utility>

#include "core/base/on_stack.hpp"
#include "core/base/os/addresses.hpp"
#include "core/base/text.hpp"
#include "core/net/grpc_library.hpp"

namespace dist {
namespace {

constexpr char kBindAddress[] = "DIST_BIND_ADDRESS";

Status check_addresses(const GrpcOptions& options, Exposed* exposed) {
  const std::size_t n = options.addresses.size();
  for (std::size_t i = 0; i < n; ++i) {
    const char* const text = options.addresses[i];
    HostAndPort address;
    if (text == nullptr || !parse_address(text, 1, &address)) {
      return invalid_argument("the address of worker %zu is \"%s\", but must be %s", i, Shown(text).c_str(),
                              kAddressForm);
    }
    for (std::size_t j = 0; j < i; ++j) {
      if (std::strcmp(text, options.addresses[j]) == 0) {
        return invalid_argument("workers %zu and %zu have the same address, \"%s\"", j, i,
                                Shown(text).c_str());
      }
    }
    char name[48];
    std::snprintf(name, sizeof name, "the address of worker %zu", i);
    exposed->add(name, text);
  }
  HostAndPort bind;
  if (options.port != nullptr || options.bind_address == nullptr) return kOk;
  if (!parse_address(options.bind_address, 1, &bind)) {
    return invalid_argument("%s is \"%s\", but must be %s", kBindAddress, Shown(options.bind_address).c_str(),
                            kAddressForm);
  }
  exposed->add(kBindAddress, options.bind_address);
  if (!bind.is_number() || check_exposure(options, *exposed, "").ok()) return kOk;
  // If the address is wrong, that is reported rather than what the address would otherwise require.
  const std::string why = why_not_bind(std::string(bind.host), 0);
  return why.empty() ? kOk
                     : fail(DIST_UNAVAILABLE,
                            "%s is \"%s\", but this process cannot listen there: %s. Set it to an "
                            "address of this machine, or to 0.0.0.0 or [::] for all interfaces.",
                            kBindAddress, Shown(options.bind_address).c_str(), why.c_str());
}

Status check(const GrpcOptions& options) {
  const std::size_t n = options.addresses.size();
  if (n < 1) return invalid_argument("there are no addresses, but a network must have at least one worker");
  if (options.me < 0 || options.me >= static_cast<int>(n)) {
    return invalid_argument("this is worker %d, but the addresses are of workers 0 to %zu", options.me,
                            n - 1);
  }
  if (!options.replicas.empty() && options.replicas.size() != n) {
    return invalid_argument("replicas are of %zu workers, but there are %zu", options.replicas.size(), n);
  }
  Exposed exposed;
  DIST_TRY(check_addresses(options, &exposed));
  if (options.credit != 0 && (options.credit < static_cast<int64_t>(Transport::kLeastCounted) ||
                              options.credit > static_cast<int64_t>(GrpcNetwork::kMostCredit))) {
    return invalid_argument("credit is %lld; use %zu to %zu, or 0", static_cast<long long>(options.credit),
                            Transport::kLeastCounted, GrpcNetwork::kMostCredit);
  }
  DIST_TRY(check_security(options));
  if (options.links != nullptr && options.tls()) {
    return failed_precondition(
        "transport %s sends data as plain text, but TLS certificates are set (DIST_TLS_CA, "
        "DIST_TLS_CERTIFICATE, DIST_TLS_KEY). Unset them, or use transport grpc.",
        options.links->name);
  }
  if (options.links != nullptr && exposed.any() && !options.allow_plaintext) {
    return failed_precondition(
        "transport %s sends data as plain text, but %s. Use transport grpc with TLS, or set "
        "DIST_PLAINTEXT=1 if "
        "everyone on the network may read and change the data.",
        options.links->name, exposed.c_str());
  }
  return check_exposure(options, exposed, "workers of the job");
}

const char* text_of(const char* text) noexcept { return text == nullptr ? "" : text; }

}  // namespace

Status GrpcNetwork::create(const dist_allocator& allocator, const GrpcOptions& options,
                           Ref<GrpcNetwork>* out) {
  DIST_TRY(check(options));
  const GrpcModule* module = nullptr;
  DIST_TRY(find_grpc_library(options.module_folder, &module));
  Ref<Memory> memory;
  DIST_TRY(create_memory(allocator, "allocator", &memory));
  *out = make_counted<GrpcNetwork>(*memory, options, *module);
  return kOk;
}

GrpcNetwork::GrpcNetwork(Memory& memory, const GrpcOptions& options, const GrpcModule& module)
    : Network(memory),
      addresses_(&memory),
      me_(options.me),
      bind_address_(
          options.port != nullptr ? Text(options.port->address(), &memory)
          : options.bind_address != nullptr
              ? Text(options.bind_address, &memory)
              : default_bind_address(memory, options.addresses[static_cast<std::size_t>(options.me)])),
      listens_elsewhere_(options.port == nullptr && options.bind_address != nullptr),
      port_(Ref<HeldPort>::share(options.port)),
      digest_(text_of(options.digest), &memory),
      security_(memory, options),
      forms_(options.forms),
      came_from_(options.came_from),
      replicas_(options.replicas.begin(), options.replicas.end(), &memory),
      credit_(options.credit == 0 ? kDefaultCredit : static_cast<std::size_t>(options.credit)),
      links_(options.links),
      module_(module) {
  addresses_.reserve(options.addresses.size());
  for (const char* const each : options.addresses) addresses_.emplace_back(each);
}

GrpcNetwork::~GrpcNetwork() {
  // A forked child has none of gRPC's threads and must not touch its objects.
  if (handle_ != nullptr && !memory().forked()) module_.stop(handle_);
  give_port_back();
}

void GrpcNetwork::give_port_back() noexcept {
  if (std::exchange(uses_port_, false)) port_->give_back();
}

Status GrpcNetwork::join(int worker, Transport** out) noexcept {
  if (memory().forked())
    return failed_precondition(
        "this is a forked child, in which the network has no threads. Create another one in the child.");
  if (worker != me_) {
    return invalid_argument("`worker` is %d, but this network belongs to worker %d", worker, me_);
  }
  if (joined_) return failed_precondition("worker %d has already joined this network", worker);
  auto* const addresses = DIST_ON_STACK(const char*, addresses_.size());
  for (std::size_t i = 0; i < addresses_.size(); ++i) addresses[i] = addresses_[i].c_str();
  if (port_ && !port_->take()) {
    return failed_precondition(
        "worker %d cannot join: another strategy uses the port of this worker, %s. Destroy that strategy "
        "first, or "
        "create another resolver.",
        worker, port_->address());
  }
  uses_port_ = static_cast<bool>(port_);
  char why[sizeof ErrorRecord::message] = "";
  const dist_status code =
      module_.start({{addresses, addresses_.size()},
                     me_,
                     bind_address_.c_str(),
                     port_ ? std::span<const Descriptor>(port_->sockets()) : std::span<const Descriptor>(),
                     digest_.empty() ? nullptr : digest_.c_str(),
                     security_.view(),
                     forms_,
                     came_from_,
                     replicas_,
                     credit_,
                     links_,
                     &memory()},
                    out, &handle_, why, sizeof why);
  if (code != DIST_OK) give_port_back();
  // The address to listen on is the only setting of this worker that can be wrong here.
  if (code == DIST_UNAVAILABLE && listens_elsewhere_) {
    return fail(code, "worker %d cannot join: %s is \"%s\", but this process %s", worker, kBindAddress,
                Shown(bind_address_.c_str()).c_str(), why);
  }
  if (code != DIST_OK) return fail(code, "worker %d cannot join: %s", worker, why);
  joined_ = true;
  return kOk;
}

Status GrpcNetwork::form(const Forming& wanted, Formed* out) noexcept {
  if (!joined_ || !forms_)
    return failed_precondition("the workers of this network are the workers of the cluster");
  char why[sizeof ErrorRecord::message] = "";
  const dist_status code = module_.form(handle_, wanted, out, why, sizeof why);
  return code == DIST_OK ? kOk : fail(code, "%s", why);
}

bool GrpcNetwork::has_newcomers() const noexcept {
  return joined_ && !memory().forked() && module_.has_newcomers(handle_);
}

Parting GrpcNetwork::leave() noexcept {
  if (!joined_ || memory().forked()) return {};
  const Parting parting = module_.part(handle_);
  give_port_back();
  return parting;
}

bool GrpcNetwork::is_exposed() const noexcept {
  if (security_.view().tls()) return false;
  return std::ranges::any_of(addresses_, [](const Text& text) {
    HostAndPort address;
    return !parse_address(text.c_str(), 1, &address) || !address.is_loopback();
  });
}

void GrpcNetwork::describe(char* text, std::size_t size) const noexcept {
  std::snprintf(
      text, size,
      "processes that communicate by gRPC%s%s, %s%s; this one listens on %s; a process is lost after "
      "%.4g s without a heartbeat",
      links_ != nullptr ? ", with data over " : "", links_ != nullptr ? links_->description : "",
      security_.ca.empty() ? "unencrypted" : "encrypted by TLS",
      security_.secret.empty() ? "" : " and authenticated by the job's secret", bind_address_.c_str(),
      static_cast<double>(security_.lease_ns) * 1e-9);
}

}  // namespace dist
