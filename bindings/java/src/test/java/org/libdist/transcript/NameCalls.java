// SPDX-License-Identifier: Apache-2.0

package org.libdist.transcript;

import java.time.Duration;
import java.util.Map;
import org.libdist.Aggregation;
import org.libdist.Communication;
import org.libdist.CommunicationOptions;
import org.libdist.CrossDeviceKind;
import org.libdist.InputMode;
import org.libdist.ReduceOp;
import org.libdist.ShardPolicy;
import org.libdist.Synchronization;

/** The calls about names and about options for communication. */
final class NameCalls {
    private NameCalls() {}

    static void addTo(Map<String, Calls.Call> all) {
        Calls.text("enum_name", (p, l) -> name(l.number("domain"), l.number("value")));
        Calls.number("enum_from_name", (p, l) -> number(l.number("domain"), l.text("name")));
        Calls.number("reduce_op_from_aggregation",
                (p, l) -> ReduceOp.fromAggregation(Aggregation.values()[l.number("aggregation")]).ordinal()
                        + 1);
        all.put("communication_options_merge", (p, l, came) -> {
            CommunicationOptions merged = communication(l, "base.").merge(communication(l, "over."));
            came.put("out.implementation", Integer.toString(merged.implementation().ordinal()));
            came.put("out.bytes_per_pack", Long.toString(merged.bytesPerPack()));
            came.put("out.timeout_ns", Long.toString(merged.timeout().map(Duration::toNanos).orElse(0L)));
            came.put("out.has_timeout", merged.timeout().isPresent() ? "1" : "0");
        });
        Calls.text("communication_options_describe", (p, l) -> communication(l, "options.").describe());
    }

    /** Of a value in a domain of C's: DIST_ENUM_.... */
    private static String name(int domain, int value) {
        return switch (domain) {
            case 3, 4 -> ReduceOp.values()[value - 1].tfName();
            case 6 -> Synchronization.values()[value].tfName();
            case 7 -> Aggregation.values()[value].tfName();
            case 8 -> Communication.values()[value].tfName();
            case 9 -> (value == 5 ? CrossDeviceKind.HOST : CrossDeviceKind.values()[value]).tfName();
            case 10 -> InputMode.values()[value].tfName();
            case 11 -> ShardPolicy.values()[value + 1].tfName();
            default -> throw new IllegalArgumentException("no enum of domain " + domain);
        };
    }

    private static int number(int domain, String name) {
        return switch (domain) {
            case 4 -> ReduceOp.fromName(name).ordinal() + 1;
            case 6 -> Synchronization.fromName(name).ordinal();
            case 7 -> Aggregation.fromName(name).ordinal();
            case 8 -> Communication.fromName(name).ordinal();
            case 9 -> {
                CrossDeviceKind kind = CrossDeviceKind.fromName(name);
                yield kind == CrossDeviceKind.HOST ? 5 : kind.ordinal();
            }
            case 10 -> InputMode.fromName(name).ordinal();
            case 11 -> ShardPolicy.fromName(name).ordinal() - 1;
            default -> throw new IllegalArgumentException("no enum of domain " + domain);
        };
    }

    private static CommunicationOptions communication(Line l, String prefix) {
        CommunicationOptions options =
                CommunicationOptions.DEFAULT
                        .implementation(Communication.values()[l.number(prefix + "implementation")])
                        .bytesPerPack(l.integer(prefix + "bytes_per_pack"));
        long timeout = l.integer(prefix + "timeout_ns");
        boolean given = timeout != 0 || l.number(prefix + "has_timeout") != 0;
        return given ? options.timeout(Duration.ofNanos(timeout)) : options;
    }
}
