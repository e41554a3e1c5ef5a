" Reads $LINES_FILE with the compiler plugin and writes what the quickfix list holds to $RESULT_FILE as JSON.
compiler samedevice
execute 'cgetfile' fnameescape($LINES_FILE)
let s:entries = []
for s:entry in getqflist()
  call add(s:entries, {
        \ 'file': s:entry.bufnr ? bufname(s:entry.bufnr) : '',
        \ 'row': s:entry.lnum,
        \ 'column': s:entry.col,
        \ 'severity': s:entry.type,
        \ 'text': s:entry.text,
        \ })
endfor
call writefile([json_encode(s:entries), &makeprg], $RESULT_FILE)
qall!
