// SPDX-License-Identifier: Apache-2.0

package org.libdist;

import org.libdist.internal.DistModule;
import org.libdist.internal.DistModuleConstants;

/** How many pipelines make the batches. */
public enum InputMode {
    /** One; its elements are dealt to the replicas. */
    PER_WORKER(DistModuleConstants.DIST_INPUT_PER_WORKER),
    /** One for each replica. */
    PER_REPLICA(DistModuleConstants.DIST_INPUT_PER_REPLICA);

    final int code;

    InputMode(int code) {
        this.code = code;
    }

    static InputMode of(int code) {
        for (InputMode each : values()) {
            if (each.code == code) {
                return each;
            }
        }
        throw new DistException(Status.INTERNAL, "InputMode: libdist gave " + code);
    }

    /** TensorFlow's name of it. */
    public String tfName() {
        return Texts.of(DistModule.dist_input_mode_name(code));
    }

    /**
     * The one of that name, in any case: for settings that are read from a file or a command line.
     *
     * @throws DistException INVALID_ARGUMENT another name; the message says which there are
     */
    public static InputMode fromName(String name) {
        int[] out = new int[1];
        DistModule.dist_input_mode_from_name(Texts.bytes(name, "name"), out);
        return of(out[0]);
    }
}
