// SPDX-License-Identifier: Apache-2.0
#include "core/net/membership/launcher.hpp"

#include <cstring>

#include "core/base/text.hpp"
#include "core/cluster/integers.hpp"
#include "core/cluster/job_settings.hpp"
#include "core/cluster/link_security.hpp"
#include "core/cluster/resolver.hpp"
#include "core/net/link_modules.hpp"
#include "core/net/membership/registration.hpp"

namespace dist {
namespace {

// The variables that a launcher sets. A member is NULL if the launcher has no such variable.
struct Launcher {
  const char* rank;
  const char* size;
  const char* other_size;  // if `size` is not set
  const char* job;
  const char* job_part;  // appended to the job's name, after a dot
};
constexpr Launcher kAny = {"DIST_RANK", "DIST_SIZE", nullptr, nullptr, nullptr};
constexpr Launcher kEqual[] = {
    {"RANK", "WORLD_SIZE", nullptr, "TORCHELASTIC_RUN_ID", nullptr},
    {"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", nullptr, "PMIX_NAMESPACE", nullptr},
    {"PMI_RANK", "PMI_SIZE", nullptr, nullptr, nullptr},
};
// Slurm may start other launchers, so they have precedence.
constexpr Launcher kSlurm = {"SLURM_PROCID", "SLURM_STEP_NUM_TASKS", "SLURM_NTASKS", "SLURM_JOB_ID",
                             "SLURM_STEP_ID"};

// Returns NULL if the variable is not set or is empty.
const char* text_of(const char* name) noexcept {
  const char* const text = name == nullptr ? nullptr : environment_text(name);
  return text == nullptr || *text == '\0' ? nullptr : text;
}

const char* size_name(const Launcher& launcher) noexcept {
  return launcher.other_size != nullptr && text_of(launcher.size) == nullptr ? launcher.other_size
                                                                             : launcher.size;
}

struct Numbers {
  int32_t rank = 0;
  int32_t size = 0;
};

// If the size is given, the launcher's variable for it is not read.
Status read(const Launcher& launcher, int32_t given_size, Numbers* out) noexcept {
  DIST_TRY(int_of(text_of(launcher.rank), launcher.rank, &out->rank));
  out->size = given_size;
  if (given_size != 0) return kOk;
  const char* const name = size_name(launcher);
  const char* const text = text_of(name);
  if (text == nullptr) {
    return failed_precondition(
        "%s is set, but %s is not, so the number of workers is not known. Set both, or set the size as an "
        "option.",
        launcher.rank, name);
  }
  return int_of(text, name, &out->size);
}

// Finds the launcher of this process; stores NULL if there is none.
Status find_launcher(int32_t given_size, const Launcher** out) noexcept {
  *out = text_of(kAny.rank) != nullptr ? &kAny : nullptr;
  if (*out != nullptr) return kOk;
  Numbers first;
  for (const Launcher& each : kEqual) {
    if (text_of(each.rank) == nullptr) continue;
    Numbers numbers;
    DIST_TRY(read(each, given_size, &numbers));
    if (*out == nullptr) {
      *out = &each;
      first = numbers;
    } else if (numbers.rank != first.rank || numbers.size != first.size) {
      return failed_precondition(
          "the environment has two launchers: this process has rank %d of %d by %s, but rank %d of %d by %s. "
          "Unset the variables of one of them, or set DIST_RANK and DIST_SIZE.",
          first.rank, first.size, (*out)->rank, numbers.rank, numbers.size, each.rank);
    }
  }
  if (*out == nullptr && text_of(kSlurm.rank) != nullptr) *out = &kSlurm;
  return kOk;
}

Status check_numbers(const RendezvousPlace& place) noexcept {
  if (place.size < 1 || place.size > DIST_MAX_CLUSTER_TASKS) {
    return invalid_argument("the number of workers (%s) is %d, but must be 1 to %d", place.size_source,
                            place.size, DIST_MAX_CLUSTER_TASKS);
  }
  if (place.rank < 0 || place.rank >= place.size) {
    return invalid_argument("the rank (%s) is %d, but must be 0 to %d, because there are %s (%s)",
                            place.rank_source, place.rank, place.size - 1,
                            CountText(place.size, "worker").text, place.size_source);
  }
  return kOk;
}

Status find_address(Memory& memory, const char* given, RendezvousPlace* out) {
  if (given == nullptr) {
    given = text_of("DIST_RENDEZVOUS");
    out->address_source = "DIST_RENDEZVOUS";
  }
  const char* const host = text_of("MASTER_ADDR");
  const char* const port = text_of("MASTER_PORT");
  if (given != nullptr) {
    out->address = given;
  } else if (host != nullptr && port != nullptr) {
    out->address_source = "MASTER_ADDR and the port after MASTER_PORT";
    int32_t number = 0;
    DIST_TRY(int_of(port, "MASTER_PORT", &number));
    if (number < 1 || number > 65534) {
      return invalid_argument(
          "MASTER_PORT is %d, but must be 1 to 65534, because libdist uses the next port. Set "
          "DIST_RENDEZVOUS "
          "to another address.",
          number);
    }
    // PyTorch's store listens on MASTER_PORT, in torchrun or in the process with rank 0, so libdist uses the
    // next port.
    out->address = address_text(memory, host, number + 1);
  } else if (out->size == 1) {
    out->address_source = "not needed";
    return kOk;
  } else {
    return failed_precondition(
        "the address of worker 0 is not known. Set DIST_RENDEZVOUS to \"host:port\", the same in all "
        "workers, "
        "or set the address as an option.");
  }
  HostAndPort parsed;
  if (out->address.size() < DIST_MAX_ADDRESS_BYTES && parse_address(out->address.c_str(), 1, &parsed))
    return kOk;
  return invalid_argument("the rendezvous address (%s) is \"%s\", but must be %s", out->address_source,
                          Shown(out->address.c_str()).c_str(), kAddressForm);
}

Status find_job(const char* given, const Launcher* launcher, RendezvousPlace* out) {
  const char* what = "job_name";
  if (given == nullptr) given = text_of(what = "DIST_JOB_NAME");
  if (given == nullptr && launcher != nullptr) given = text_of(what = launcher->job);
  if (given == nullptr) return kOk;
  if (::strnlen(given, kMostJobNameBytes + 1) > kMostJobNameBytes || !is_line(given)) {
    return invalid_argument("%s must be a single line of at most %zu bytes", what, kMostJobNameBytes);
  }
  out->job = given;
  if (launcher == nullptr || what != launcher->job) return kOk;
  const char* const part = text_of(launcher->job_part);
  if (part == nullptr) return kOk;
  out->job.append(".").append(part, ::strnlen(part, 32));
  return is_line(out->job.c_str()) && out->job.size() <= kMostJobNameBytes
             ? kOk
             : invalid_argument("%s and %s must be short and without control characters", what,
                                launcher->job_part);
}

}  // namespace

Status find_meeting_module(Memory& memory, const RendezvousOptions& options,
                           const dist_link_functions** out) {
  if (options.address != nullptr || text_of("DIST_RENDEZVOUS") != nullptr) return kOk;
  JobSettings settings(memory);
  DIST_TRY(read_job_settings(&settings));
  const char* const folder = settings.module_folder.empty() ? nullptr : settings.module_folder.c_str();
  const dist_link_functions* links = nullptr;
  DIST_TRY(find_links(options.transport, settings.link_module_for(options.transport), folder, &links));
  if (links != nullptr && has_meet(*links)) *out = links;
  return kOk;
}

Status wants_to_meet(Memory& memory, dist_transport transport, bool* out) {
  *out = false;
  if (text_of("TF_CONFIG") != nullptr) return kOk;
  const dist_link_functions* module = nullptr;
  RendezvousOptions options;
  options.transport = transport;
  DIST_TRY(find_meeting_module(memory, options, &module));
  *out = module != nullptr || text_of("DIST_RENDEZVOUS") != nullptr;
  return kOk;
}

Status check_place_of_module(const RendezvousOptions& options, const char* module, RendezvousPlace* place) {
  DIST_TRY(check_numbers(*place));
  Numbers other{options.rank == DIST_TASK_UNSET ? place->rank : options.rank,
                options.size == 0 ? place->size : options.size};
  const char* source = "the options";
  const auto agree = [&] { return other.rank == place->rank && other.size == place->size; };
  const Launcher* launcher = nullptr;
  if (agree()) {
    DIST_TRY(find_launcher(0, &launcher));
    // Slurm also sets its variables in programs that it has not started as one of several.
    if (launcher != nullptr && launcher != &kSlurm) {
      DIST_TRY(read(*launcher, 0, &other));
      source = launcher->rank;
    }
  }
  if (!agree()) {
    return failed_precondition(
        "this process has rank %d of %d by the link module \"%s\", but rank %d of %d by %s. Use the link "
        "module "
        "of the launcher, or set DIST_RENDEZVOUS.",
        place->rank, place->size, module, other.rank, other.size, source);
  }
  return find_job(options.job_name, nullptr, place);
}

Status find_rendezvous_place(Memory& memory, const RendezvousOptions& options, RendezvousPlace* out) {
  const Launcher* launcher = nullptr;
  out->rank = options.rank;
  out->size = options.size;
  if (options.rank == DIST_TASK_UNSET || options.size == 0) {
    DIST_TRY(find_launcher(options.size, &launcher));
    if (launcher == nullptr) {
      return failed_precondition(
          "the %s not known. Start this process with dist-launch, torchrun, mpirun or srun, set "
          "DIST_RANK and DIST_SIZE, or set `rank` and `size` as options.",
          options.rank == DIST_TASK_UNSET ? "rank of this process is" : "number of workers is");
    }
    Numbers numbers;
    DIST_TRY(read(*launcher, options.size, &numbers));
    if (options.rank == DIST_TASK_UNSET) {
      out->rank = numbers.rank;
      out->rank_source = launcher->rank;
    }
    if (options.size == 0) {
      out->size = numbers.size;
      out->size_source = size_name(*launcher);
    }
  }
  DIST_TRY(check_numbers(*out));
  DIST_TRY(find_address(memory, options.address, out));
  return find_job(options.job_name, launcher, out);
}

}  // namespace dist
