" Vim compiler file: samedevice, a linter for PyTorch device placement.
" Put it into ~/.vim/compiler/ (Neovim: ~/.config/nvim/compiler/), then:
"   :compiler samedevice | make %

if exists("current_compiler")
  finish
endif
let current_compiler = "samedevice"

let s:cpo_save = &cpo
set cpo&vim

CompilerSet makeprg=samedevice\ check\ --output-format\ concise
" path:row:col: error: SD101 message
CompilerSet errorformat=%f:%l:%c:\ %t%*[a-z]:\ %m

let &cpo = s:cpo_save
unlet s:cpo_save
