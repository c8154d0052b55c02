"""What a node may keep beside FULL: windows of SWA, states of recurrent layers; and who asks which of them."""
