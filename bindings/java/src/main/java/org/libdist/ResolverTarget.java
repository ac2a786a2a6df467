// SPDX-License-Identifier: Apache-2.0

package org.libdist;

import java.lang.ref.Reference;
import java.util.List;
import java.util.Objects;
import java.util.Optional;
import java.util.OptionalInt;
import java.util.function.Supplier;
import org.libdist.internal.DistModule;
import org.libdist.internal.DistModuleConstants;
import org.libdist.internal.ResolverAnswer;
import org.libdist.internal.ResolverCallbacks;

/** Calls a {@link ResolverFunctions} on the thread that queries the resolver. */
final class ResolverTarget extends Target {
    /** Holds what functions threw in the current query of this thread. */
    private static final ThreadLocal<Target> ASKING = new ThreadLocal<>();

    private static final ResolverCallbacks CALLBACKS = new ResolverCallbacks() {
        @Override
        public int answer(
                long token, int question, byte[] type, int id, byte[] layer, ResolverAnswer answer) {
            try {
                ResolverTarget target = (ResolverTarget) Upcalls.target(token);
                target.answer(question, Texts.of(type), ClusterSpec.given(id), Texts.of(layer), answer);
                return 0;
            } catch (Throwable t) {
                Target asking = ASKING.get();
                if (asking != null) {
                    asking.keep(t);
                }
                return tell(t);
            }
        }
    };

    static {
        DistModule.set_resolver_callbacks(CALLBACKS);
    }

    private final ResolverFunctions functions;

    ResolverTarget(ResolverFunctions functions) {
        this.functions = functions;
    }

    /** Makes a query and rethrows what a function of the program threw. */
    static <T> T asking(Supplier<T> question) {
        Target before = ASKING.get();
        Target asked = new Target() {};
        ASKING.set(asked);
        try {
            return question.get();
        } catch (DistException report) {
            asked.rethrowOwn(report);
            throw report;
        } finally {
            ASKING.set(before);
        }
    }

    /**
     * Returns one bit for each query that is answered. The default implementations of the other methods count
     * as answers too.
     */
    int answered() {
        int all = 0;
        for (int question : new int[] {DistModuleConstants.RESOLVER_SPEC,
                     DistModuleConstants.RESOLVER_TASK_TYPE, DistModuleConstants.RESOLVER_TASK_ID,
                     DistModuleConstants.RESOLVER_RPC_LAYER, DistModuleConstants.RESOLVER_ENVIRONMENT}) {
            all |= 1 << question;
        }
        if (overrides("master", String.class, OptionalInt.class, String.class)) {
            all |= 1 << DistModuleConstants.RESOLVER_ADDRESS;
        }
        if (overrides("numAccelerators", String.class, OptionalInt.class)) {
            all |= 1 << DistModuleConstants.RESOLVER_NUM_ACCELERATORS;
        }
        return all;
    }

    private boolean overrides(String name, Class<?>... parameters) {
        try {
            return functions.getClass().getMethod(name, parameters).getDeclaringClass()
                    != ResolverFunctions.class;
        } catch (NoSuchMethodException e) {
            throw new IllegalStateException(e);
        }
    }

    private void answer(int question, String type, OptionalInt id, String layer, ResolverAnswer answer)
            throws Exception {
        switch (question) {
            case DistModuleConstants.RESOLVER_SPEC:
                ClusterSpec spec = Objects.requireNonNull(functions.spec(), "spec() gave null");
                ClusterSpec copy = ClusterSpec.fromSpecs(List.of(spec));
                answer.set_spec(copy.owner.handOver());
                Reference.reachabilityFence(copy); // or the cleaner may be first
                break;
            case DistModuleConstants.RESOLVER_TASK_TYPE:
                text(functions.taskType(), "taskType", answer);
                break;
            case DistModuleConstants.RESOLVER_TASK_ID:
                answer.set_number(ClusterSpec.number(given(functions.taskId(), "taskId")));
                break;
            case DistModuleConstants.RESOLVER_RPC_LAYER:
                text(functions.rpcLayer(), "rpcLayer", answer);
                break;
            case DistModuleConstants.RESOLVER_ENVIRONMENT:
                text(functions.environment(), "environment", answer);
                break;
            case DistModuleConstants.RESOLVER_ADDRESS:
                answer.set_text(Texts.bytes(given(functions.master(type, id, layer), "master")));
                break;
            default:
                answer.set_number(functions.numAccelerators(type, id));
                break;
        }
    }

    private static <T> T given(T answer, String name) {
        return Objects.requireNonNull(answer, name + "() gave null");
    }

    private static void text(Optional<String> text, String name, ResolverAnswer answer) {
        answer.set_text(Texts.orNull(given(text, name).orElse(null)));
    }
}
