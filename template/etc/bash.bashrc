[ -z "$PS1" ] && return
PS1='\u@\h:\w\$ '
alias ls='ls --color=auto'
