// SPDX-License-Identifier: Apache-2.0

package org.libdist;

import static org.libdist.Tap.check;
import static org.libdist.Tap.equal;

import java.lang.reflect.Field;
import java.lang.reflect.Method;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Set;
import java.util.TreeSet;
import org.libdist.internal.DistModule;
import org.libdist.internal.DistModuleConstants;

/** Names of C in messages are Java's. */
final class NamesTest {
    /** As ../exceptions.md says. */
    private static final Set<String> NOT_OFFERED = Set.of("dist_replica_attach", "dist_replica_detach",
            // What is behind a Request.
            "dist_completions_create", "dist_completions_next", "dist_completions_destroy",
            "dist_completions_descriptor", "dist_request_user_data", "dist_request_destroy",
            "dist_dtype_size", "dist_tensor_num_elements");
    /** Each enum has these as methods of its own: tfName(), fromName(). */
    private static final Set<String> OF_EACH_ENUM = Set.of("dist_enum_name", "dist_enum_from_name");

    private NamesTest() {}

    static void addTo(Tap tap) {
        tap.add("every function of C's has its method in messages", NamesTest::functions);
        tap.add("every constant of C's has its enum in messages", NamesTest::constants);
        tap.add("messages in Java's words", NamesTest::messages);
    }

    /** The text in Java's words; backquotes are around names of C. */
    private static String ownWords(String text) {
        StringBuilder marked = new StringBuilder();
        boolean inName = false;
        for (char each : text.toCharArray()) {
            marked.append(each != '`' ? each : inName ? '\u000F' : '\u000E');
            inName ^= each == '`';
        }
        return Texts.of(DistModule.own_words(Texts.words(marked.toString())));
    }

    private static boolean exists(String word) throws ReflectiveOperationException {
        String[] parts = word.split("\\.");
        if (word.startsWith("new ")) {
            return Class.forName("org.libdist." + word.substring(4)).getConstructors().length > 0;
        }
        Class<?> owner = Class.forName("org.libdist." + parts[0]);
        return parts.length == 1
                || Arrays.stream(owner.getMethods()).anyMatch(method -> method.getName().equals(parts[1]));
    }

    private static void functions() {
        Set<String> wrong = new TreeSet<>();
        for (Method method : DistModule.class.getMethods()) {
            String name = method.getName();
            if (!name.startsWith("dist_") || NOT_OFFERED.contains(name) || OF_EACH_ENUM.contains(name)) {
                continue;
            }
            String word = ownWords("`" + name + "()`").replaceAll("\\(\\)$", "");
            try {
                if (!exists(word)) {
                    wrong.add(name + ": " + word);
                }
            } catch (ReflectiveOperationException e) {
                wrong.add(name + ": " + word);
            }
        }
        check(wrong.isEmpty(), wrong);
    }

    private static void constants() {
        List<String> wrong = new ArrayList<>();
        for (Field field : DistModuleConstants.class.getFields()) {
            if (field.getName().matches("(?!DIST_).*|DIST_(ENUM|MAX|VERSION|PRIORITY)_.*|DIST_VERSION|DIST_NO_TIMEOUT|DIST_TASK_UNSET|DIST_NUMERICS_DEFAULT|DIST_PARTITIONER_.*")) { // numbers, no choices
                continue;
            }
            String word = ownWords("`" + field.getName() + "`");
            String[] parts = word.split("\\.");
            try {
                Class<?> type = Class.forName("org.libdist." + parts[0]);
                if (type.isEnum()) {
                    type.getField(parts[1]);
                } else {
                    check(exists(word.replaceAll("[(].*", "")), word);
                }
            } catch (ReflectiveOperationException | AssertionError e) {
                wrong.add(field.getName() + ": " + word);
            }
        }
        check(wrong.isEmpty(), wrong);
    }

    private static void messages() {
        String[][] pairs = {
                {"`dist_barrier()`: replica 2 is not running", "Replica.barrier(): replica 2 is not running"},
                {"`dist_run_options.timeout_ns` is negative", "RunOptions.timeout is negative"},
                {"`op` is `DIST_REDUCE_USER`, but `options->reduce_fn` is `NULL`",
                        "op is ReduceOp.USER, but options.reducer is null"},
                {"`options->cpu->num_cpus` is -1", "options.cpus is -1"},
                {"use `DIST_F32` or another `DIST_...` type", "use DType.F32 or another DType type"},
                {"`dist_strategy_destroy()`: groups are left; `destroy` them first",
                        "Strategy.close(): groups are left; close them first"},
                {"all_reduce #1 (tag \"num_replicas NULL\"): variable \"timeout_ns\" of my_model is `NULL`",
                        "all_reduce #1 (tag \"num_replicas NULL\"): variable \"timeout_ns\" of my_model is null"},
        };
        for (String[] pair : pairs) {
            equal(pair[1], ownWords(pair[0]));
        }
    }
}
