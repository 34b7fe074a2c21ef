/* Runs cells in Java, with the JDK's jshell in this process. How it speaks with the bridge is told
 * in driver.py; in addition, `i` interrupts the cell. */

import java.io.BufferedInputStream;
import java.io.BufferedOutputStream;
import java.io.DataInputStream;
import java.io.DataOutputStream;
import java.io.FileDescriptor;
import java.io.FileInputStream;
import java.io.FileOutputStream;
import java.io.IOException;
import java.io.InputStream;
import java.io.OutputStream;
import java.io.PrintStream;
import java.lang.reflect.Field;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.Semaphore;
import java.util.concurrent.TimeUnit;
import jdk.jshell.DeclarationSnippet;
import jdk.jshell.Diag;
import jdk.jshell.EvalException;
import jdk.jshell.ExpressionSnippet;
import jdk.jshell.JShell;
import jdk.jshell.JShellException;
import jdk.jshell.Snippet;
import jdk.jshell.SnippetEvent;
import jdk.jshell.SourceCodeAnalysis;
import jdk.jshell.SourceCodeAnalysis.Completeness;
import jdk.jshell.UnresolvedReferenceException;
import jdk.jshell.VarSnippet;

public class Driver {
    /* What the jshell program imports, too. */
    static final String[] IMPORTS = {"java.io.*", "java.math.*", "java.net.*", "java.nio.file.*",
        "java.util.*", "java.util.concurrent.*", "java.util.function.*", "java.util.prefs.*",
        "java.util.regex.*", "java.util.stream.*"};

    record Frame(char kind, String text) {}

    /* Where a snippet came from: to tell a place in the user's own lines. */
    record Origin(int cell, int line) {}

    final DataInputStream input;
    final DataOutputStream output;
    final BlockingQueue<Frame> frames = new LinkedBlockingQueue<>();
    final Semaphore settled = new Semaphore(0);
    final Map<String, Origin> origins = new HashMap<>();
    final Map<String, String> saved = new HashMap<>();
    final Set<String> ownProperties = Set.copyOf(System.getProperties().stringPropertyNames());
    final Map<String, String> environment;
    JShell shell;
    int cell;
    volatile boolean running;
    volatile boolean interrupted;

    public static void main(String[] args) throws Exception {
        new Driver(args[0], args[1]).serve();
        System.exit(0);
    }

    Driver(String in, String out) throws Exception {
        input = new DataInputStream(new BufferedInputStream(new FileInputStream(in)));
        output = new DataOutputStream(new BufferedOutputStream(new FileOutputStream(out)));
        environment = environmentMap();
        Stream.driver = this;
        System.setOut(Stream.printer(FileDescriptor.out));
        System.setErr(Stream.printer(FileDescriptor.err));
        System.setIn(new NoInput());
    }

    void serve() throws Exception {
        Thread reader = new Thread(this::read, "sandglass");
        reader.setDaemon(true);
        reader.start();
        shell = JShell.builder().executionEngine("local").build();
        for (String name : IMPORTS)
            shell.eval("import " + name + ";");
        while (true) {
            Frame frame = frames.take();
            switch (frame.kind) {
            case 'g' -> setVariable(frame.text, false);
            case 'v' -> setVariable(frame.text, true);
            case 'x' -> {
                run(frame.text);
                restoreVariables();
                send('F', "");
            }
            case 'q' -> {
                return;
            }
            default -> {} /* d: Java cannot change its directory */
            }
        }
    }

    /* ---- frames ------------------------------------------------------------------------------ */

    void read() {
        try {
            while (true) {
                byte[] bytes = new byte[input.readInt()];
                input.readFully(bytes);
                char kind = (char) bytes[0];
                if (kind == 's')
                    settled.release();
                else if (kind == 'i')
                    interrupt();
                else
                    frames.add(new Frame(kind,
                        new String(bytes, 1, bytes.length - 1, StandardCharsets.UTF_8)));
            }
        } catch (IOException e) {
            System.exit(0);
        }
    }

    synchronized void send(char kind, String text) {
        try {
            byte[] bytes = text.getBytes(StandardCharsets.UTF_8);
            output.writeInt(1 + bytes.length);
            output.writeByte(kind);
            output.write(bytes);
            output.flush();
        } catch (IOException e) {
            Runtime.getRuntime().halt(1);
        }
    }

    void sendError(String name, String value, String traceback) {
        send('R', "e");
        send('T', "name\0" + name);
        send('T', "value\0" + value);
        send('T', "traceback\0" + traceback);
        send('r', "");
    }

    /* Standard output or error: unbuffered, and in order with the other one. */
    static class Stream extends OutputStream {
        static Driver driver;
        static Stream last;
        final FileOutputStream file;

        Stream(FileDescriptor descriptor) {
            file = new FileOutputStream(descriptor);
        }

        static PrintStream printer(FileDescriptor descriptor) {
            return new PrintStream(new Stream(descriptor), true, StandardCharsets.UTF_8);
        }

        @Override
        public void write(int b) throws IOException {
            write(new byte[] {(byte) b}, 0, 1);
        }

        @Override
        public void write(byte[] bytes, int offset, int length) throws IOException {
            synchronized (Stream.class) {
                if (last != this && last != null)
                    driver.settle();
                last = this;
                file.write(bytes, offset, length);
            }
        }
    }

    void settle() {
        settled.drainPermits();
        send('S', "");
        try {
            settled.tryAcquire(100, TimeUnit.MILLISECONDS);
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
        }
    }

    static class NoInput extends InputStream {
        @Override
        public int read() throws IOException {
            throw new IOException("standard input is not available in a cell");
        }
    }

    /* ---- environment ------------------------------------------------------------------------- */

    /* What System.getenv() shows is the view of a map, which Java does not let one change. Children
     * see it only if they are given an environment of their own. */
    @SuppressWarnings("unchecked")
    static Map<String, String> environmentMap() {
        try {
            Map<String, String> view = System.getenv();
            Field field = view.getClass().getDeclaredField("m");
            field.setAccessible(true);
            return (Map<String, String>) field.get(view);
        } catch (ReflectiveOperationException | RuntimeException e) {
            return new HashMap<>();
        }
    }

    void setVariable(String text, boolean keep) {
        int at = text.indexOf('=');
        String name = text.substring(0, at);
        if (keep && !saved.containsKey(name))
            saved.put(name, environment.get(name));
        change(name, text.substring(at + 1));
    }

    void restoreVariables() {
        saved.forEach(this::change);
        saved.clear();
    }

    /* Programs for E2B read variables as system properties, too. Those that Java has itself stay. */
    void change(String name, String value) {
        if (value == null)
            environment.remove(name);
        else
            environment.put(name, value);
        if (ownProperties.contains(name) || name.isEmpty())
            return;
        if (value == null)
            System.clearProperty(name);
        else
            System.setProperty(name, value);
    }

    /* ---- cells ------------------------------------------------------------------------------- */

    synchronized void interrupt() {
        if (running) {
            interrupted = true;
            shell.stop();
        }
    }

    void run(String code) {
        cell++;
        interrupted = false;
        running = true;
        send('B', "");
        try {
            runSnippets(code);
        } finally {
            System.out.flush();
            System.err.flush();
            running = false;
        }
        if (interrupted)
            sendError("KeyboardInterrupt", "the cell was interrupted", "KeyboardInterrupt");
    }

    void runSnippets(String code) {
        SourceCodeAnalysis analysis = shell.sourceCodeAnalysis();
        String rest = code;
        while (!rest.isBlank() && !interrupted) {
            SourceCodeAnalysis.CompletionInfo info = analysis.analyzeCompletion(rest);
            Completeness state = info.completeness();
            if (state == Completeness.EMPTY)
                return;
            String source = (state.isComplete() ? info.source() : rest).stripLeading();
            String remaining = state.isComplete() ? info.remaining() : "";
            if (state == Completeness.DEFINITELY_INCOMPLETE) {
                sendError("CompileError", "the code ends too early",
                    place(code, code.length()) + ": the code ends too early");
                return;
            }
            int start = code.length() - rest.length();
            while (start < code.length() && Character.isWhitespace(code.charAt(start)))
                start++;
            if (!runSnippet(code, source, start, remaining.isBlank()))
                return;
            rest = remaining;
        }
    }

    /* Returns whether to go on. */
    boolean runSnippet(String code, String source, int start, boolean isLast) {
        int line = lineOf(code, start);
        List<SnippetEvent> events = shell.eval(source);
        for (SnippetEvent event : events)
            if (event.causeSnippet() == null)
                origins.put(event.snippet().id(), new Origin(cell, line));
        for (SnippetEvent event : events) {
            if (interrupted)
                return false;
            if (event.causeSnippet() != null)
                continue;
            if (event.status() == Snippet.Status.REJECTED) {
                reportDiagnostics(code, event.snippet(), start);
                return false;
            }
            if (event.exception() != null) {
                reportException(event.exception());
                return false;
            }
            if (event.snippet() instanceof DeclarationSnippet declaration)
                noteUnresolved(declaration);
            if (isLast && hasValue(event) && !code.stripTrailing().endsWith(";")) {
                send('R', "m");
                send('T', "text\0" + shown(event));
                send('r', "");
            }
        }
        return true;
    }

    void noteUnresolved(DeclarationSnippet snippet) {
        List<String> names = shell.unresolvedDependencies(snippet).toList();
        if (!names.isEmpty())
            System.err.println("Note: " + String.join(", ", names)
                + " must be declared before this can be used");
    }

    /* jshell puts a text between quotation marks. */
    static String shown(SnippetEvent event) {
        String value = event.value();
        String type = event.snippet() instanceof ExpressionSnippet expression ? expression.typeName()
            : event.snippet() instanceof VarSnippet variable ? variable.typeName() : "";
        boolean isText = type.equals("String") && value.length() > 1 && value.startsWith("\"");
        return isText ? value.substring(1, value.length() - 1) : value;
    }

    static boolean hasValue(SnippetEvent event) {
        Snippet.SubKind kind = event.snippet().subKind();
        boolean isExpression = kind == Snippet.SubKind.TEMP_VAR_EXPRESSION_SUBKIND
            || kind == Snippet.SubKind.VAR_VALUE_SUBKIND
            || kind == Snippet.SubKind.OTHER_EXPRESSION_SUBKIND;
        return isExpression && event.value() != null && !event.value().isEmpty()
            && !event.value().equals("null");
    }

    static int lineOf(String code, int at) {
        return 1 + (int) code.substring(0, at).chars().filter(c -> c == '\n').count();
    }

    static String place(String code, int at) {
        return "line " + lineOf(code, at);
    }

    void reportDiagnostics(String code, Snippet snippet, int start) {
        List<String> lines = new ArrayList<>();
        String first = null;
        for (Diag diag : shell.diagnostics(snippet).toList()) {
            if (!diag.isError())
                continue;
            int at = Math.min(start + (int) Math.max(0, diag.getPosition()), code.length());
            String message = diag.getMessage(null);
            if (first == null)
                first = place(code, at) + ": " + message.lines().findFirst().orElse("");
            lines.add(place(code, at) + ": error: " + message);
            int from = code.lastIndexOf('\n', at - 1) + 1;
            int to = code.indexOf('\n', at);
            lines.add("    " + code.substring(from, to < 0 ? code.length() : Math.max(from, to)));
            lines.add("    " + " ".repeat(Math.max(0, at - from)) + "^");
        }
        sendError("CompileError", first == null ? "the code was rejected" : first,
            String.join("\n", lines));
    }

    void reportException(JShellException exception) {
        String name = nameOf(exception);
        String value = exception.getMessage() == null ? "" : exception.getMessage();
        StringBuilder text = new StringBuilder();
        for (Throwable e = exception; e != null; e = e.getCause()) {
            text.append(e == exception ? "" : "Caused by: ").append(nameOf(e));
            text.append(e.getMessage() == null ? "" : ": " + e.getMessage());
            for (StackTraceElement element : e.getStackTrace())
                text.append("\n    at ").append(describe(element));
            text.append("\n");
        }
        sendError(name, value, text.toString().stripTrailing());
    }

    static String nameOf(Throwable e) {
        if (e instanceof EvalException eval)
            return eval.getExceptionClassName();
        if (e instanceof UnresolvedReferenceException)
            return "UnresolvedReference";
        return e.getClass().getName();
    }

    /* jshell calls the file of a snippet `#ID`, and counts its lines from 1. */
    String describe(StackTraceElement element) {
        String file = element.getFileName();
        boolean isSnippet = file != null && file.startsWith("#");
        Origin origin = isSnippet ? origins.get(file.substring(1)) : null;
        if (origin == null)
            return element.toString();
        String where = "line " + (origin.line + element.getLineNumber() - 1) + " of "
            + (origin.cell == cell ? "the cell" : "cell " + origin.cell);
        String method = element.getMethodName();
        if (method.isEmpty() || method.startsWith("do_it"))
            return where;
        String type = element.getClassName();
        return (type.isEmpty() ? method : type + "." + method) + " (" + where + ")";
    }
}
