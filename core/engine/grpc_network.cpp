// SPDX-License-Identifier: Apache-2.0
#include "core/engine/grpc_network.hpp"

#include <cstdio>
#include <cstring>
#include <string_view>

#include "core/base/os/library.hpp"
#include "core/base/text.hpp"
#include "core/engine/grpc/grpc_config.hpp"

namespace dist {
namespace {

// One of the two libraries.
struct Kind {
  const char* file;
  const char* entry;
  const char* version;
  const char* how;  // to have it
};
constexpr Kind kGrpc = {
    "libdist-grpc.so", kGrpcModuleEntry, "libdist " DIST_GRPC_VERSION ", protocol " DIST_GRPC_PROTOCOL,
    "-Dgrpc=enabled, which needs gRPC for C++ and nettle (Debian: libgrpc++-dev nettle-dev)"};
constexpr Kind kGloo = {
    "libdist-gloo.so", kGlooModuleEntry, "libdist " DIST_GRPC_VERSION ", protocol " DIST_GLOO_PROTOCOL,
    "-Dgloo=enabled, which needs gRPC for C++, nettle and Gloo (Debian: libgrpc++-dev nettle-dev "
    "libgloo-dev)"};
constexpr std::size_t kMostAddressBytes = 255;
constexpr std::size_t kMostSecretBytes = 4096;
constexpr std::size_t kMostPemBytes = std::size_t{1} << 20;
constexpr std::size_t kPathBytes = 4096;

// ---- Options ----

struct Address {
  std::string_view host;
  long port = 0;
};

bool parse(const char* text, Address* out) noexcept {
  const std::string_view whole(text);
  const std::size_t colon = whole.rfind(':');
  if (colon == std::string_view::npos || whole.size() > kMostAddressBytes || !is_line(text)) return false;
  std::string_view host = whole.substr(0, colon);
  const bool bracketed = host.size() > 2 && host.front() == '[' && host.back() == ']';
  if (bracketed) host = host.substr(1, host.size() - 2);
  if (host.empty() || (!bracketed && host.find(':') != std::string_view::npos)) return false;
  // What would begin another scheme or path for gRPC's resolver.
  if (host.find_first_of("/%? \t\\,[]") != std::string_view::npos) return false;
  const std::string_view port = whole.substr(colon + 1);
  if (port.empty() || port.size() > 5) return false;
  long number = 0;
  for (const char each : port) {
    if (each < '0' || each > '9') return false;
    number = number * 10 + (each - '0');
  }
  *out = {host, number};
  return number >= 1 && number <= 65535;
}

// Of the forms that loopback is written in; 127.1.2.3, and no name that begins so.
bool is_loopback(std::string_view host) noexcept {
  if (host == "localhost" || host == "::1") return true;
  return host.substr(0, 4) == "127." && host.find_first_not_of("0123456789.") == std::string_view::npos;
}

Status check_text(const char* text, const char* name, std::size_t most) noexcept {
  if (text == nullptr) return kOk;
  if (*text == '\0') return invalid_argument("%s is empty; leave it out, or give it", name);
  if (strnlen(text, most + 1) > most) {
    return invalid_argument("%s is longer than %zu bytes", name, most);
  }
  return kOk;
}

Status check_addresses(const GrpcOptions& options, bool* all_loopback) noexcept {
  *all_loopback = true;
  const std::size_t n = options.addresses.size();
  for (std::size_t i = 0; i < n; ++i) {
    Address address;
    if (options.addresses[i] == nullptr || !parse(options.addresses[i], &address)) {
      return invalid_argument(
          "the address of worker %zu is %s; write host:port, or [v6]:port, with a port of 1 to 65535", i,
          options.addresses[i] == nullptr ? "NULL" : Shown(options.addresses[i]).c_str());
    }
    for (std::size_t j = 0; j < i; ++j) {
      if (std::strcmp(options.addresses[i], options.addresses[j]) == 0) {
        return invalid_argument("workers %zu and %zu have one address: %s", j, i,
                                Shown(options.addresses[i]).c_str());
      }
    }
    *all_loopback = *all_loopback && is_loopback(address.host);
  }
  Address bind;
  if (options.bind_address == nullptr) return kOk;
  if (!parse(options.bind_address, &bind)) {
    return invalid_argument("bind_address is %s; write host:port, or [v6]:port",
                            Shown(options.bind_address).c_str());
  }
  *all_loopback = *all_loopback && is_loopback(bind.host);
  return kOk;
}

Status check_limits(const GrpcOptions& options) noexcept {
  if (options.lease_ns != 0 &&
      (options.lease_ns < GrpcNetwork::kLeastLeaseNs || options.lease_ns > GrpcNetwork::kMostLeaseNs)) {
    return invalid_argument("the lease is %lld ns; use 100 ms to 1 h, or 0 for 10 s",
                            static_cast<long long>(options.lease_ns));
  }
  if (options.credit != 0 && (options.credit < static_cast<int64_t>(Transport::kLeastCounted) ||
                              options.credit > static_cast<int64_t>(GrpcNetwork::kMostCredit))) {
    return invalid_argument("credit is %lld; use %zu to %zu, or 0", static_cast<long long>(options.credit),
                            Transport::kLeastCounted, GrpcNetwork::kMostCredit);
  }
  return kOk;
}

Status check(const GrpcOptions& options) noexcept {
  const std::size_t n = options.addresses.size();
  if (n < 1 || n > static_cast<std::size_t>(kMaxGrpcWorkers)) {
    return invalid_argument("there are %zu addresses; a network has 1 to %d workers", n, kMaxGrpcWorkers);
  }
  if (options.me < 0 || options.me >= static_cast<int>(n)) {
    return invalid_argument("this is worker %d; the addresses are of workers 0 to %zu", options.me, n - 1);
  }
  bool all_loopback = true;
  DIST_TRY(check_addresses(options, &all_loopback));
  DIST_TRY(check_limits(options));
  DIST_TRY(check_text(options.secret, "the secret", kMostSecretBytes));
  DIST_TRY(check_text(options.ca, "the certificate of the authority", kMostPemBytes));
  DIST_TRY(check_text(options.certificate, "the certificate", kMostPemBytes));
  DIST_TRY(check_text(options.key, "the key", kMostPemBytes));
  const int given = (options.ca != nullptr) + (options.certificate != nullptr) + (options.key != nullptr);
  if (given != 0 && given != 3) {
    return invalid_argument(
        "TLS needs the authority's certificate, this worker's certificate and its key; %d of them are "
        "there",
        given);
  }
  if (given != 0 && options.gloo) {
    return failed_precondition(
        "transport gloo sends data as plain text, and TLS certificates are given (DIST_TLS_CA, "
        "DIST_TLS_CERTIFICATE, DIST_TLS_KEY): leave them out, or use transport grpc");
  }
  if (given == 0 && !all_loopback && !options.allow_plaintext) {
    if (options.gloo) {
      return failed_precondition(
          "transport gloo sends data as plain text, and not all workers are on loopback: use transport grpc "
          "with "
          "TLS, or give DIST_PLAINTEXT=1, with which anybody on the way can read and change what is sent");
    }
    return failed_precondition(
        "not all addresses are on loopback: set DIST_TLS_CA, DIST_TLS_CERTIFICATE and DIST_TLS_KEY, or "
        "DIST_PLAINTEXT=1");
  }
  if (given == 0 && !all_loopback && options.secret == nullptr) {
    return failed_precondition(
        "plain text off loopback needs a secret that all workers of the job know: set DIST_JOB_SECRET");
  }
  return kOk;
}

// ---- The library ----

Status load(const Kind& kind, const char* path, const GrpcModule** out) noexcept {
  // gRPC's log function is one for the process: where gRPC was there before, it is the host's to say.
  const bool own_log = !is_loaded("libgpr.so");
  Library library;
  char why[512];
  if (!library.load(path, why, sizeof why)) {
    return fail(DIST_UNAVAILABLE, "%s cannot be loaded: %s", path, why);
  }
  const auto entry = reinterpret_cast<GrpcModuleEntry>(library.symbol(kind.entry));
  const GrpcModule* const table = entry == nullptr ? nullptr : entry();
  if (table == nullptr) return fail(DIST_UNAVAILABLE, "%s is no %s", path, kind.file);
  if (strnlen(table->version, sizeof table->version) == sizeof table->version ||
      std::strcmp(table->version, kind.version) != 0) {
    return fail(DIST_UNAVAILABLE,
                "%s is of another version than this libdist: %.60s, not %s; install both from one build",
                path, Shown(table->version).c_str(), kind.version);
  }
  if (own_log) table->silence();
  *out = table;
  return kOk;
}

Status find_and_load(const Kind& kind, const char* given, const GrpcModule** out) noexcept {
  if (given != nullptr) {
    if (file_is_there(given)) return load(kind, given, out);
    return fail(DIST_UNAVAILABLE, "%s is not installed (looked for %s); build libdist with %s", kind.file,
                Shown(given).c_str(), kind.how);
  }
  char folder[kPathBytes - 64] = "";
  char paths[3][kPathBytes] = {};
  std::size_t n = 0;
  if (own_folder(folder, sizeof folder)) {
    std::snprintf(paths[n++], kPathBytes, "%s/dist/%s", folder, kind.file);
    std::snprintf(paths[n++], kPathBytes, "%s/%s", folder, kind.file);
  }
  if (sizeof DIST_GRPC_FOLDER > 1)
    std::snprintf(paths[n++], kPathBytes, "%s/%s", DIST_GRPC_FOLDER, kind.file);
  for (std::size_t i = 0; i < n; ++i) {
    if (file_is_there(paths[i])) return load(kind, paths[i], out);
  }
  return fail(DIST_UNAVAILABLE, "%s is not installed (looked in %s/dist, %s and %s); build libdist with %s",
              kind.file, folder, folder, DIST_GRPC_FOLDER, kind.how);
}

const char* text_of(const char* text) noexcept { return text == nullptr ? "" : text; }

// Nobody finds it in memory that is used again.
void wipe(std::pmr::string& text) noexcept {
  volatile char* const at = text.data();
  for (std::size_t i = 0; i < text.size(); ++i) at[i] = '\0';
}

}  // namespace

Status GrpcNetwork::create(const dist_allocator& allocator, const GrpcOptions& options,
                           Ref<GrpcNetwork>* out) {
  DIST_TRY(check(options));
  const GrpcModule* module = nullptr;
  DIST_TRY(find_and_load(options.gloo ? kGloo : kGrpc, options.module, &module));
  Ref<Memory> memory;
  DIST_TRY(create_memory(allocator, "allocator", &memory));
  *out = make_counted<GrpcNetwork>(*memory, options, *module);
  return kOk;
}

GrpcNetwork::GrpcNetwork(Memory& memory, const GrpcOptions& options, const GrpcModule& module)
    : Network(memory),
      addresses_(&memory),
      me_(options.me),
      bind_address_(options.bind_address != nullptr ? options.bind_address
                                                    : options.addresses[static_cast<std::size_t>(options.me)],
                    &memory),
      digest_(text_of(options.digest), &memory),
      secret_(text_of(options.secret), &memory),
      ca_(text_of(options.ca), &memory),
      certificate_(text_of(options.certificate), &memory),
      key_(text_of(options.key), &memory),
      forms_(options.forms),
      came_from_(options.came_from),
      lease_ns_(options.lease_ns == 0 ? kDefaultLeaseNs : options.lease_ns),
      credit_(options.credit == 0 ? kDefaultCredit : static_cast<std::size_t>(options.credit)),
      gloo_(options.gloo),
      module_(module) {
  addresses_.reserve(options.addresses.size());
  for (const char* const each : options.addresses) addresses_.emplace_back(each);
}

GrpcNetwork::~GrpcNetwork() {
  wipe(secret_);
  wipe(key_);
  // A forked child has none of its threads, and leaves all of it alone.
  if (handle_ != nullptr && !memory().forked()) module_.stop(handle_);
}

Status GrpcNetwork::join(int worker, Transport** out) noexcept {
  if (memory().forked())
    return failed_precondition("this is a forked child, in which the network has no threads");
  if (worker != me_) {
    return invalid_argument("worker is %d; this network is worker %d's", worker, me_);
  }
  if (joined_) return failed_precondition("worker %d has joined this network before", worker);
  const char* addresses[kMaxGrpcWorkers];
  for (std::size_t i = 0; i < addresses_.size(); ++i) addresses[i] = addresses_[i].c_str();
  const auto given = [](const Text& text) { return text.empty() ? nullptr : text.c_str(); };
  char why[512] = "";
  const dist_status code = module_.start({{addresses, addresses_.size()},
                                          me_,
                                          bind_address_.c_str(),
                                          given(digest_),
                                          given(secret_),
                                          given(ca_),
                                          given(certificate_),
                                          given(key_),
                                          forms_,
                                          came_from_,
                                          lease_ns_,
                                          credit_,
                                          &memory()},
                                         out, &handle_, why, sizeof why);
  if (code != DIST_OK) return fail(code, "worker %d cannot join: %s", worker, why);
  joined_ = true;
  return kOk;
}

Status GrpcNetwork::form(const Forming& wanted, Formed* out) noexcept {
  if (!joined_ || !forms_) return failed_precondition("this network's workers are those of the cluster");
  char why[512] = "";
  const dist_status code = module_.form(handle_, wanted, out, why, sizeof why);
  return code == DIST_OK ? kOk : fail(code, "%s", why);
}

bool GrpcNetwork::has_newcomers() const noexcept {
  return joined_ && !memory().forked() && module_.has_newcomers(handle_);
}

Parting GrpcNetwork::leave() noexcept {
  return joined_ && !memory().forked() ? module_.part(handle_) : Parting{};
}

void GrpcNetwork::describe(char* text, std::size_t size) const noexcept {
  std::snprintf(
      text, size, "processes, reached by gRPC (%s%s) from %s%s; one is lost after %.4g s without a word",
      ca_.empty() ? "plain text" : "TLS", secret_.empty() ? "" : ", with the job's secret",
      bind_address_.c_str(), gloo_ ? ", with data over Gloo" : "", static_cast<double>(lease_ns_) * 1e-9);
}

}  // namespace dist
