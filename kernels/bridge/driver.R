# Runs cells in R. How it speaks with the bridge is told in driver.py.
#
# Everything of ours is in an environment of its own, and interrupts are held back but while a
# cell's code runs.

local({

pipes <- commandArgs(trailingOnly = TRUE)
input <- file(pipes[1], "rb", raw = TRUE)
output <- file(pipes[2], "wb", raw = TRUE)
plots <- tempfile("plots")

read_frame <- function() {
    size <- readBin(input, "integer", 1L, endian = "big")
    if (length(size) == 0L)
        quit("no", runLast = FALSE)
    readBin(input, "raw", size)
}

send <- function(kind, payload = "") {
    bytes <- c(charToRaw(kind), charToRaw(enc2utf8(payload)))
    writeBin(length(bytes), output, endian = "big")
    writeBin(bytes, output)
    flush(output)
}

send_field <- function(kind, key, text) {
    bytes <- c(charToRaw(kind), charToRaw(key), as.raw(0L), charToRaw(enc2utf8(text)))
    writeBin(length(bytes), output, endian = "big")
    writeBin(bytes, output)
}

send_result <- function(kind, text = NULL, html = NULL, data = NULL) {
    send("R", kind)
    if (!is.null(text)) send_field("T", "text", text)
    if (!is.null(html)) send_field("T", "html", html)
    if (!is.null(data)) send_field("J", "data", data)
    send("r")
}

send_error <- function(name, value, traceback) {
    send("R", "e")
    send_field("T", "name", name)
    send_field("T", "value", value)
    send_field("T", "traceback", paste(traceback, collapse = "\n"))
    send("r")
}

# ---- values ----------------------------------------------------------------------------------

escape_html <- function(x) {
    x <- gsub("&", "&amp;", x, fixed = TRUE)
    x <- gsub("<", "&lt;", x, fixed = TRUE)
    gsub(">", "&gt;", x, fixed = TRUE)
}

rows_max <- 60L

html_table <- function(x) {
    cut <- nrow(x) > rows_max
    half <- rows_max / 2L
    shown <- if (cut) x[c(seq_len(half), seq(nrow(x) - half + 1L, nrow(x))), , drop = FALSE] else x
    cells <- vapply(shown, function(column) escape_html(enc2utf8(trimws(format(column)))),
                    character(nrow(shown)))
    dim(cells) <- dim(shown)
    row <- function(head, values, tag)
        paste0("<tr><th>", head, "</th>",
               paste0("<", tag, ">", values, "</", tag, ">", collapse = ""), "</tr>")
    lines <- vapply(seq_len(nrow(shown)), function(i)
        row(escape_html(rownames(shown)[i]), cells[i, ], "td"), "")
    if (cut)
        lines <- append(lines, row("⋮", rep("⋮", ncol(shown)), "td"), half)
    paste0("<table>\n<caption>", nrow(x), " × ", ncol(x), "</caption>\n<thead>",
           row("", escape_html(names(x)), "th"), "</thead>\n<tbody>\n",
           paste(lines, collapse = "\n"), "\n</tbody>\n</table>")
}

json_string <- function(x) {
    x <- enc2utf8(x)
    x <- gsub("\\", "\\\\", x, fixed = TRUE)
    x <- gsub("\"", "\\\"", x, fixed = TRUE)
    x <- gsub("\n", "\\n", x, fixed = TRUE)
    x <- gsub("\r", "\\r", x, fixed = TRUE)
    x <- gsub("\t", "\\t", x, fixed = TRUE)
    paste0("\"", gsub("[[:cntrl:]]", " ", x), "\"")
}

json_column <- function(x) {
    none <- is.na(x)
    text <- if (inherits(x, "POSIXt")) json_string(format(x, "%Y-%m-%dT%H:%M:%S"))
            else if (is.numeric(x) && is.null(attr(x, "class")))
                ifelse(is.finite(x), format(x, digits = 15L, trim = TRUE, scientific = FALSE),
                       "null")
            else if (is.logical(x)) ifelse(x, "true", "false")
            else json_string(as.character(x))
    text[none] <- "null"
    paste0("[", paste(text, collapse = ","), "]")
}

json_table <- function(x) {
    simple <- vapply(x, function(column) is.atomic(column) || inherits(column, "POSIXt"), NA)
    x <- x[simple]
    columns <- paste(json_string(names(x)), vapply(x, json_column, ""), sep = ":")
    paste0("{", paste(columns, collapse = ","), "}")
}

draws <- function(value) inherits(value, c("ggplot", "trellis", "grob", "recordedplot"))

show_value <- function(kind, value) {
    if (draws(value))
        return(allowInterrupts(print(value)))
    lines <- allowInterrupts(
        capture.output(if (isS4(value)) methods::show(value) else print(value)))
    table <- is.data.frame(value) && ncol(value) > 0L
    send_result(kind, paste(lines, collapse = "\n"),
                if (table) tryCatch(html_table(value), error = function(e) NULL),
                if (table) tryCatch(json_table(value), error = function(e) NULL))
    if (kind == "d") {
        send("S")
        read_frame()
    }
}

# ---- output in whole pieces ------------------------------------------------------------------

# R writes to the console at once and piece by piece: a print() of three numbers is three writes, and
# so would be three pieces of output for whoever listens. So what one call of print() or cat() says
# is held until it returns, unless it is diverted anyway. Their arguments are worked out before: what
# these say is no part of it.
holding <- NULL

hold <- function() {
    if (sink.number() > 0L || !is.null(holding))
        return(FALSE)
    holding <<- rawConnection(raw(), "w")
    sink(holding)
    TRUE
}

release <- function() {
    held <- holding
    holding <<- NULL
    while (sink.number() > 0L)
        sink()
    text <- rawToChar(rawConnectionValue(held))
    close(held)
    say(text)
}

say <- base::cat

# Puts `first` before the body of a function of R's own.
begin_with <- function(name, first) {
    f <- get(name, baseenv())
    body(f) <- call("{", first, body(f))
    unlockBinding(name, baseenv())
    assign(name, f, baseenv())
    lockBinding(name, baseenv())
}

begin_with("print", bquote({
    force(x)
    if (.(hold)()) on.exit(.(release)())
}))
begin_with("cat", bquote({
    # One text is one write as it is.
    if (length(list(...)) != 1L || length(..1) > 1L || !identical(sep, " ") || fill > 0)
        if (identical(file, "") && .(hold)()) on.exit(.(release)())
}))

# ---- plots -----------------------------------------------------------------------------------

device <- 0L

open_device <- function(...) {
    dir.create(plots, showWarnings = FALSE)
    grDevices::png(file.path(plots, "%04d.png"), type = "cairo", units = "in",
                   width = getOption("repr.plot.width", 7),
                   height = getOption("repr.plot.height", 7),
                   res = getOption("repr.plot.res", 120))
    device <<- grDevices::dev.cur()
}

# A page is whole when the next one begins, or the cell is over.
send_plots <- function() {
    open <- grDevices::dev.list()
    if (any(open == device & names(open) == "png"))
        grDevices::dev.off(device)
    device <<- 0L
    for (path in sort(list.files(plots, full.names = TRUE))) {
        send("R", "d")
        send_field("T", "text", "<plot>")
        send_field("P", "png", path)
        send("r")
    }
}

show_files <- function(files, ...)
    for (path in files)
        writeLines(readLines(path))

options(device = open_device, bitmapType = "cairo", warn = 1, width = 100, pager = show_files,
        menu.graphics = FALSE)

# ---- cells -----------------------------------------------------------------------------------

saved <- list()

set_variable <- function(text, keep) {
    at <- regexpr("=", text, fixed = TRUE)
    name <- substr(text, 1L, at - 1L)
    if (keep)
        saved[[name]] <<- Sys.getenv(name, unset = NA)
    do.call(Sys.setenv, structure(list(substring(text, at + 1L)), names = name))
}

restore_variables <- function() {
    for (name in names(saved))
        if (is.na(saved[[name]])) Sys.unsetenv(name)
        else do.call(Sys.setenv, structure(list(saved[[name]]), names = name))
    saved <<- list()
}

# The calls between the cell's own code and the error; the rest is ours or R's.
user_calls <- function(calls, depth) {
    calls <- calls[seq_along(calls) > depth]
    at <- Position(is_ours, calls)
    if (!is.na(at))
        calls <- calls[-seq_len(min(at + 1L, length(calls)))]
    text <- vapply(calls, function(call) paste(deparse(call, nlines = 1L), collapse = ""), "")
    text[!grepl("^(\\.handleSimpleError|h\\(simpleError|\\(function \\(condition)", text)]
}

is_ours <- function(call) identical(call, quote(eval(expressions[[i]], globalenv())))

report <- function(condition, calls, line) {
    value <- conditionMessage(condition)
    call <- conditionCall(condition)
    head <- if (is.null(call) || is_ours(call)) "Error"
            else paste0("Error in ", paste(deparse(call, nlines = 1L), collapse = ""))
    name <- setdiff(class(condition), c("simpleError", "rlang_error"))[1L]
    send_error(if (is.na(name) || name == "error") "Error" else name, value,
               c(paste0(head, ": ", value), paste0("  at line ", line, " of the cell"),
                 if (length(calls)) c("Traceback:", paste0(seq_along(calls), ". ", calls))))
}

# Returns whether it went well.
evaluate <- function(expressions, code) {
    line <- 0L
    calls <- character()
    refs <- attr(expressions, "srcref")
    depth <- sys.nframe()
    last <- length(expressions)
    quiet <- grepl(";[[:space:]]*$", code)
    on_error <- function(condition) calls <<- user_calls(sys.calls(), depth)
    # R would name our call of eval() as the place.
    on_warning <- function(condition)
        if (is_ours(conditionCall(condition)) && getOption("warn") < 2L) {
            if (getOption("warn") >= 0L)
                message("Warning: ", conditionMessage(condition))
            invokeRestart("muffleWarning")
        }
    tryCatch({
        for (i in seq_len(last)) {
            line <- refs[[i]][1L]
            result <- withCallingHandlers(
                allowInterrupts(withVisible(eval(expressions[[i]], globalenv()))),
                error = on_error, warning = on_warning)
            if (result$visible && !(quiet && i == last))
                withCallingHandlers(show_value(if (i == last) "m" else "d", result$value),
                                    error = on_error)
        }
    }, error = function(e) report(e, calls, line),
       interrupt = function(e)
           send_error("KeyboardInterrupt", "the cell was interrupted",
                      paste0("KeyboardInterrupt\n  at line ", line, " of the cell")))
}

run <- function(bytes) {
    code <- rawToChar(bytes[bytes != 0L])
    Encoding(code) <- "UTF-8"
    source <- srcfilecopy("cell", strsplit(code, "\n")[[1L]])
    expressions <- tryCatch(parse(text = code, srcfile = source, keep.source = TRUE),
        error = function(e) {
            text <- sub("^(cell|<text>):([0-9]+):[0-9]+:", "line \\2:", conditionMessage(e))
            send_error("SyntaxError", strsplit(text, "\n")[[1L]][1L], text)
            NULL
        })
    if (!is.null(expressions))
        evaluate(expressions, code)
    while (sink.number() > 0L)
        sink()
    tryCatch(send_plots(), error = function(e)
        message("the plots cannot be shown: ", conditionMessage(e)))
}

suspendInterrupts(repeat {
    frame <- read_frame()
    text <- function() {
        text <- rawToChar(frame[-1L])
        Encoding(text) <- "UTF-8"
        text
    }
    switch(rawToChar(frame[1L]),
        g = set_variable(text(), FALSE),
        d = tryCatch(setwd(text()), error = function(e) NULL),
        v = set_variable(text(), TRUE),
        x = {
            # One that came too late for the cell before.
            tryCatch(allowInterrupts(Sys.sleep(0.0001)), interrupt = function(e) NULL)
            send("B")
            run(frame[-1L])
            restore_variables()
            send("F")
        })
})

})
